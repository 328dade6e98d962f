package main

import (
	"bufio"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// proxy stands between the processes and the broker. It knows where requests begin and
// of which kind they are, and does one thing at a time to the next one of a kind.
type proxy struct {
	listener net.Listener
	open     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
	trap  *trap
	gate  chan struct{} // while it isn't nil, requests that end transactions wait for its closing
}

// trap is what is done to the next request of a kind.
type trap struct {
	key  kmsg.Key
	what trick
	hold time.Duration
	hit  chan struct{} // closed when it is done
}

type trick int

const (
	cutBefore trick = iota // the broker doesn't get the request
	cutAfter               // it does, and its answer is lost
	hold                   // it gets the request late
	tricks
	pass // nothing is done to it
)

func (t trick) String() string { return [...]string{"cut before", "cut after", "held"}[t] }

func newProxy() (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, conns: make(map[net.Conn]bool)}
	p.open.Go(p.accept)
	return p, nil
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.open.Go(func() { p.serve(client) })
	}
}

func (p *proxy) close() {
	p.listener.Close()
	p.mu.Lock()
	for c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.open.Wait()
}

// hold has requests that end transactions wait until open is called.
func (p *proxy) hold() (open func()) {
	gate := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gate = gate
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.gate == gate {
			p.gate = nil
			close(gate)
		}
	}
}

// wait holds a request up while it must.
func (p *proxy) wait(key kmsg.Key) {
	if key != kmsg.EndTxn && key != kmsg.InitProducerID {
		return
	}
	p.mu.Lock()
	gate := p.gate
	p.mu.Unlock()
	if gate != nil {
		<-gate
	}
}

// track has close end a connection.
func (p *proxy) track(c net.Conn) (untrack func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = true
	return func() {
		c.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, c)
	}
}

// set lays a trap and returns whether it was hit within that time.
func (p *proxy) set(t *trap, within time.Duration) bool {
	t.hit = make(chan struct{})
	p.mu.Lock()
	p.trap = t
	p.mu.Unlock()
	select {
	case <-t.hit:
		return true
	case <-time.After(within):
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trap == t {
		p.trap = nil
		return false
	}
	return true
}

// take is the trap that a request of a kind goes into, or nil.
func (p *proxy) take(key kmsg.Key) *trap {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.trap
	if t == nil || t.key != key {
		return nil
	}
	p.trap = nil
	close(t.hit)
	return t
}

// cutSome cuts about half of all connections, whatever is on them.
func (p *proxy) cutSome(r *rand.Rand) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if r.IntN(2) == 0 {
			c.Close()
		}
	}
}

// serve passes on requests, and answers as they come.
func (p *proxy) serve(client net.Conn) {
	defer p.track(client)()
	in := bufio.NewReader(client)
	address, err := in.ReadString('\n')
	if err != nil {
		return
	}
	broker, err := net.DialTimeout("tcp", strings.TrimSpace(address), 5*time.Second)
	if err != nil {
		return
	}
	defer p.track(broker)()
	p.open.Go(func() {
		defer client.Close()
		io.Copy(client, broker)
	})
	var size [4]byte
	for {
		if _, err := io.ReadFull(in, size[:]); err != nil {
			return
		}
		request := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(in, request); err != nil || len(request) < 2 {
			return
		}
		key := kmsg.Key(binary.BigEndian.Uint16(request))
		p.wait(key)
		t := p.take(key)
		switch {
		case t == nil:
		case t.what == cutBefore:
			return
		case t.what == cutAfter:
			client.Close()
		case t.what == hold:
			time.Sleep(t.hold)
		}
		if _, err := broker.Write(append(size[:], request...)); err != nil {
			return
		}
		if t != nil && t.what == cutAfter {
			time.Sleep(100 * time.Millisecond) // or the broker might drop it unread
			return
		}
	}
}

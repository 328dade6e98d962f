package streamstest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/mirror"
)

// ReadMirrorStates, WriteMirrorStates
//
// Behavior:
// * The node that kfake would have as the coordinator of a group with the mirror's name answers; others say
//   NOT_COORDINATOR
// * States are kept in memory; what they say is not held against the cluster's topics
//
// kfake can't be told of requests that kmsg doesn't know. So they are taken off the connection, and put into the tags
// of a DescribeCluster request, as which they go through kfake in the order in which they came, and to its control
// functions.

// mirrorTag marks a DescribeCluster request that carries another. Its value is the other's key and body.
const mirrorTag = 0x0dae

// mirrorKeys are the API keys of the requests, as WithMirrorStates has them.
type mirrorKeys struct {
	mirror.Keys
	on   bool
	used atomic.Bool // kfake listens with our function
}

// request returns an empty request with the key, or nil.
func (k *mirrorKeys) request(key int16) kmsg.Request {
	switch {
	case !k.on:
		return nil
	case key == k.ReadMirrorStates:
		return &mirror.ReadMirrorStatesRequest{APIKey: key}
	case key == k.WriteMirrorStates:
		return &mirror.WriteMirrorStatesRequest{APIKey: key}
	}
	return nil
}

// check returns what is wrong with the option.
func (k *mirrorKeys) check(noStreams bool) error {
	if k.on && noStreams {
		return errors.New("doesn't go with WithoutStreamsGroups")
	}
	if k.on {
		return k.Validate()
	}
	return nil
}

// checkMirrorStates returns why the cluster, which listens by now, can't answer the requests.
func (b *Broker) checkMirrorStates() error {
	switch {
	case !b.config.mirrors.on:
		return nil
	case !b.config.mirrors.used.Load():
		return errors.New("WithMirrorStates doesn't go with kfake.ListenFn: the requests are taken off the connections")
	case b.ask.tls:
		return errors.New("WithMirrorStates doesn't go with TLS: the requests are taken off the connections")
	}
	return nil
}

func (b *Broker) describeCluster(node int32, kreq kmsg.Request) (kmsg.Response, bool, error) {
	var carried []byte
	kreq.(*kmsg.DescribeClusterRequest).UnknownTags.Each(func(key uint32, value []byte) {
		if key == mirrorTag {
			carried = value
		}
	})
	if carried == nil {
		return nil, false, nil
	}
	r := kbin.Reader{Src: carried}
	req := b.config.mirrors.request(r.Int16())
	if req == nil {
		return nil, true, errors.New("a DescribeCluster request carries no mirror request")
	}
	if err := req.ReadFrom(r.Src); err != nil {
		return nil, true, err
	}
	switch req := req.(type) {
	case *mirror.ReadMirrorStatesRequest:
		return b.mirrorStates(node, req, req.MirrorName, func() kmsg.Response { return b.mirrors.Read(req) }), true, nil
	case *mirror.WriteMirrorStatesRequest:
		return b.mirrorStates(node, req, req.MirrorName, func() kmsg.Response { return b.mirrors.Write(req) }), true, nil
	}
	return nil, true, fmt.Errorf("unhandled %T", req)
}

// mirrorStates answers a request, unless a fault does or the node is not the one to ask.
func (b *Broker) mirrorStates(node int32, req kmsg.Request, name string, answer func() kmsg.Response) kmsg.Response {
	fault := b.faults.hit(node, req, name)
	if !fault.instead() {
		if b.cluster.CoordinatorFor(name) != node {
			return refusal(req, kerr.NotCoordinator)
		}
		b.mu.Lock()
		resp := answer()
		b.mu.Unlock()
		if fault == nil {
			return resp
		}
	}
	return refusal(req, fault.err)
}

// refusal answers a mirror request with an error.
func refusal(req kmsg.Request, err *kerr.Error) kmsg.Response {
	resp := req.ResponseKind()
	switch resp := resp.(type) {
	case *mirror.ReadMirrorStatesResponse:
		resp.ErrorCode = err.Code
	case *mirror.WriteMirrorStatesResponse:
		resp.ErrorCode = err.Code
	}
	return resp
}

// carrying makes a listener whose connections put mirror requests into others.
func (k *mirrorKeys) carrying(f listen) listen {
	if !k.on {
		return f
	}
	return func(network, address string) (net.Listener, error) {
		l, err := f(network, address)
		if err != nil {
			return nil, err
		}
		k.used.Store(true)
		return carryListener{l, k}, nil
	}
}

type carryListener struct {
	net.Listener
	keys *mirrorKeys
}

func (l carryListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &carryConn{Conn: conn, in: bufio.NewReader(conn), keys: l.keys}, nil
}

// carryConn reads whole requests.
type carryConn struct {
	net.Conn
	in    *bufio.Reader
	keys  *mirrorKeys
	ready []byte // what is still to be read of the current request
	lost  bool   // what comes is no requests, but TLS
}

func (c *carryConn) Read(p []byte) (int, error) {
	if len(c.ready) == 0 && !c.lost {
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	if c.lost {
		return c.in.Read(p)
	}
	n := copy(p, c.ready)
	c.ready = c.ready[n:]
	return n, nil
}

// next reads a request with its size.
func (c *carryConn) next() error {
	head, err := c.in.Peek(4)
	if err != nil {
		return err
	}
	const most = 100 << 20 // as a broker has it
	size := binary.BigEndian.Uint32(head)
	if c.lost = size > most; c.lost {
		return nil
	}
	frame := make([]byte, 4+size)
	if _, err := io.ReadFull(c.in, frame); err != nil {
		return err
	}
	c.ready = c.keys.carry(frame)
	return nil
}

// carry puts a mirror request into another, and returns all others as they are.
func (k *mirrorKeys) carry(frame []byte) []byte {
	r := kbin.Reader{Src: frame[4:]}
	key := r.Int16()
	r.Int16() // version
	corr := r.Int32()
	client := r.NullableString()
	if k.request(key) == nil || !r.Ok() {
		return frame
	}
	kmsg.SkipTags(&r) // of the header
	carrier := kmsg.NewPtrDescribeClusterRequest()
	carrier.UnknownTags.Set(mirrorTag, append(kbin.AppendInt16(nil, key), r.Src...))
	var options []kmsg.RequestFormatterOpt
	if client != nil {
		options = append(options, kmsg.FormatterClientID(*client))
	}
	return kmsg.NewRequestFormatter(options...).AppendRequest(nil, carrier, corr)
}

package streamstest

import (
	"encoding/binary"
	"net"
	"sync"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// clientIDs are the client ids of members. kfake tells its control functions nothing about the sender of a request, so
// they are read off the connections: the id is in the header of every request. On connections with TLS they are not.
type clientIDs struct{ byMember sync.Map }

// of returns the client id with which a member sent its last heartbeat, or "".
func (c *clientIDs) of(member string) string {
	id, _ := c.byMember.Load(member)
	s, _ := id.(string)
	return s
}

type listen = func(network, address string) (net.Listener, error)

// listening makes a listener whose connections are read along.
func (c *clientIDs) listening(f listen) listen {
	return func(network, address string) (net.Listener, error) {
		l, err := f(network, address)
		if err != nil {
			return nil, err
		}
		return readListener{l, c}, nil
	}
}

type readListener struct {
	net.Listener
	ids *clientIDs
}

func (l readListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &readConn{Conn: conn, frames: frames{ids: l.ids}}, nil
}

type readConn struct {
	net.Conn
	frames frames
}

func (c *readConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.frames.read(p[:n])
	return n, err
}

// frames follows the requests on one connection.
type frames struct {
	ids  *clientIDs
	head []byte // the size and the beginning of the current request
	skip int    // how much of the rest of the current request is to come
	lost bool   // what comes is no requests
}

// lookedAt is how much of a request is looked at: its size, its header, and the group and member of a heartbeat.
const lookedAt = 4 + 1024

func (f *frames) read(p []byte) {
	for len(p) > 0 && !f.lost {
		if f.skip > 0 {
			n := min(f.skip, len(p))
			f.skip, p = f.skip-n, p[n:]
			continue
		}
		want := 4
		if len(f.head) >= 4 {
			want = min(lookedAt, 4+f.size())
		}
		n := min(want-len(f.head), len(p))
		f.head, p = append(f.head, p[:n]...), p[n:]
		if len(f.head) < 4 {
			return
		}
		const most = 100 << 20 // as a broker has it
		if f.size() < 0 || f.size() > most {
			f.lost = true
		} else if len(f.head) == min(lookedAt, 4+f.size()) {
			f.take()
			f.skip = 4 + f.size() - len(f.head)
			f.head = f.head[:0]
		}
	}
}

func (f *frames) size() int { return int(int32(binary.BigEndian.Uint32(f.head))) }

// take looks at the beginning of a request.
func (f *frames) take() {
	r := kbin.Reader{Src: f.head[4:]}
	key := r.Int16()
	r.Int16() // version
	r.Int32() // correlation id
	id := r.NullableString()
	if key != int16(kmsg.StreamsGroupHeartbeat) || id == nil {
		return
	}
	kmsg.SkipTags(&r)
	r.CompactString() // group
	if member := r.CompactString(); r.Ok() {
		f.ids.byMember.Store(member, *id)
	}
}

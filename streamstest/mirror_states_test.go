package streamstest_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/mirror"
	"github.com/odradek-go/odradek/streamstest"
)

var mirrorKeys = mirror.Keys{ReadMirrorStates: 1000, WriteMirrorStates: 1001}

func writeRequest(topic string) *mirror.WriteMirrorStatesRequest {
	req := mirror.NewWriteMirrorStatesRequest(mirrorKeys, "m")
	req.Topics = []mirror.Topic[mirror.WritePartition]{{Name: topic, Partitions: []mirror.WritePartition{{LastMirroredOffset: 7, State: 1}}}}
	return req
}

// One node answers, the others send elsewhere; all announce the requests.
func TestMirrorStatesNodes(t *testing.T) {
	b, _ := start(t, streamstest.WithNodes(3), streamstest.WithMirrorStates(mirrorKeys))
	cl := connect(t, b, mirrorKeys.ClientOption())
	for node := range int32(3) {
		announced := 0
		for _, k := range request[*kmsg.ApiVersionsResponse](t, cl, node, apiVersions()).ApiKeys {
			if k.ApiKey == 1000 || k.ApiKey == 1001 {
				announced++
			}
		}
		if announced != 2 {
			t.Errorf("node %d announces %d requests", node, announced)
		}
		want := int16(0)
		if node != b.Cluster().CoordinatorFor("m") {
			want = kerr.NotCoordinator.Code
		}
		if resp := request[*mirror.WriteMirrorStatesResponse](t, cl, node, writeRequest("a")); resp.ErrorCode != want {
			t.Errorf("write at node %d: error %d", node, resp.ErrorCode)
		}
		if resp := request[*mirror.ReadMirrorStatesResponse](t, cl, node, mirror.NewReadMirrorStatesRequest(mirrorKeys, "m")); resp.ErrorCode != want || want == 0 && len(resp.Topics) != 1 {
			t.Errorf("read at node %d: error %d, %v", node, resp.ErrorCode, resp.Topics)
		}
	}
	if resp := request[*kmsg.DescribeClusterResponse](t, cl, 0, kmsg.NewPtrDescribeClusterRequest()); len(resp.Brokers) != 3 {
		t.Errorf("DescribeCluster is answered %+v", resp)
	}
}

func apiVersions() *kmsg.ApiVersionsRequest {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "test", "0"
	return req
}

// Requests that are sent without waiting are answered in order, in whatever pieces
// they arrive, and the mirror's among others.
func TestMirrorStatesPipelined(t *testing.T) {
	b, _ := start(t, streamstest.WithMirrorStates(mirrorKeys))
	conn, err := net.Dial("tcp", b.Addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var sent []byte
	var requests []kmsg.Request
	format := kmsg.NewRequestFormatter(kmsg.FormatterClientID("client"))
	for i := range 30 {
		var req kmsg.Request
		switch i % 3 {
		case 0:
			req = writeRequest(strings.Repeat("t", 1+100*i))
		case 1:
			req = mirror.NewReadMirrorStatesRequest(mirrorKeys, "m")
		case 2:
			metadata := kmsg.NewPtrMetadataRequest()
			metadata.Version = 9
			req = metadata
		}
		if i == 9 {
			format = kmsg.NewRequestFormatter() // no client id
		}
		requests = append(requests, req)
		sent = append(sent, format.AppendRequest(nil, req, int32(i))...)
	}
	go func() {
		for n := 1; len(sent) > 0; n += 97 {
			n = min(n, len(sent))
			if _, err := conn.Write(sent[:n]); err != nil {
				return
			}
			sent = sent[n:]
		}
	}()
	topics := 0
	for i, req := range requests {
		var size [4]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		body := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(conn, body); err != nil {
			t.Fatal(err)
		}
		r := kbin.Reader{Src: body}
		if corr := r.Int32(); corr != int32(i) {
			t.Fatalf("answer %d is to request %d", i, corr)
		}
		kmsg.SkipTags(&r)
		resp := req.ResponseKind()
		if err := resp.ReadFrom(r.Src); err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		switch resp := resp.(type) {
		case *mirror.WriteMirrorStatesResponse:
			topics++
			if resp.ErrorCode != 0 || len(resp.Topics) != 1 {
				t.Errorf("write: %+v", resp)
			}
		case *mirror.ReadMirrorStatesResponse:
			if len(resp.Topics) != topics {
				t.Errorf("after %d writes there are %d topics", topics, len(resp.Topics))
			}
		}
	}
}

// A request that is not what it says ends its connection and
// nothing else.
func TestMirrorStatesMalformed(t *testing.T) {
	b, _ := start(t, streamstest.WithMirrorStates(mirrorKeys))
	cl := connect(t, b, mirrorKeys.ClientOption())
	header := []byte{0x03, 0xe8, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0} // key 1000
	for name, sent := range map[string][]byte{
		"no body":     append([]byte{0, 0, 0, 11}, header...),
		"null topics": append(append([]byte{0, 0, 0, 15}, header...), 1, 0, 1, 0),
	} {
		conn, err := net.Dial("tcp", b.Addrs()[0])
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
		if _, err := conn.Write(sent); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(conn); len(got) > 0 {
			t.Errorf("%s: answered %x, %v", name, bytes.TrimSpace(got), err)
		}
		conn.Close()
	}
	if resp := request[*mirror.ReadMirrorStatesResponse](t, cl, 0, mirror.NewReadMirrorStatesRequest(mirrorKeys, "m")); resp.ErrorCode != 0 {
		t.Errorf("error %d", resp.ErrorCode)
	}
}

func TestMirrorStatesFaults(t *testing.T) {
	b, _ := start(t, streamstest.WithMirrorStates(mirrorKeys))
	cl := connect(t, b, mirrorKeys.ClientOption())
	b.Fault(
		kfake.Fault{Keys: []kmsg.Key{1001}, Err: kerr.RequestTimedOut},
		kfake.Fault{Keys: []kmsg.Key{1001}, Err: kerr.CoordinatorNotAvailable, Group: "m"},
		kfake.Fault{Keys: []kmsg.Key{1000}, Err: kerr.NotController, Count: 1},
		kfake.Fault{Keys: []kmsg.Key{1000}, Group: "other"},
	)
	codes := func(topics ...string) (codes []int16) {
		for _, topic := range topics {
			codes = append(codes, request[*mirror.WriteMirrorStatesResponse](t, cl, 0, writeRequest(topic)).ErrorCode)
		}
		return codes
	}
	if got := codes("timed out", "refused", "written"); got[0] != kerr.RequestTimedOut.Code || got[1] != kerr.CoordinatorNotAvailable.Code || got[2] != 0 {
		t.Errorf("writes: errors %v", got)
	}
	read := mirror.NewReadMirrorStatesRequest(mirrorKeys, "m")
	if resp := request[*mirror.ReadMirrorStatesResponse](t, cl, 0, read); resp.ErrorCode != kerr.NotController.Code {
		t.Errorf("read: error %d", resp.ErrorCode)
	}
	resp := request[*mirror.ReadMirrorStatesResponse](t, cl, 0, read)
	if len(resp.Topics) != 2 || resp.Topics[0].Name != "timed out" || resp.Topics[1].Name != "written" {
		t.Errorf("what timed out should have been written, what was refused not: %+v", resp)
	}
}

func TestMirrorStatesRefused(t *testing.T) {
	listen := kfake.ListenFn(net.Listen)
	server := httptest.NewUnstartedServer(nil) // for its certificate
	server.StartTLS()
	defer server.Close()
	tls := kfake.TLS(&tls.Config{Certificates: server.TLS.Certificates})
	for name, test := range map[string]struct {
		opts []streamstest.Option
		says string
	}{
		"a taken key":            {[]streamstest.Option{streamstest.WithMirrorStates(mirror.Keys{ReadMirrorStates: 88, WriteMirrorStates: 1001})}, "StreamsGroupHeartbeat"},
		"without streams groups": {[]streamstest.Option{streamstest.WithMirrorStates(mirrorKeys), streamstest.WithoutStreamsGroups()}, "WithoutStreamsGroups"},
		"another listener":       {[]streamstest.Option{streamstest.WithMirrorStates(mirrorKeys), streamstest.WithKfake(listen)}, "ListenFn"},
		"TLS":                    {[]streamstest.Option{streamstest.WithMirrorStates(mirrorKeys), streamstest.WithKfake(tls)}, "TLS"},
	} {
		b, err := streamstest.NewBroker(test.opts...)
		if err == nil {
			b.Close()
		}
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Mirror states work on a network in memory, in simulated time.
func TestMirrorStatesSimulated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network kfake.VirtualNetwork
		b, err := streamstest.NewBroker(streamstest.WithNetwork(&network), streamstest.WithMirrorStates(mirrorKeys))
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...), kgo.Dialer(network.DialContext), mirrorKeys.ClientOption())
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		c, err := mirror.NewClient(cl, mirror.Config{Keys: mirrorKeys})
		if err != nil {
			t.Fatal(err)
		}
		var late atomic.Bool
		defer time.AfterFunc(time.Hour, func() { late.Store(true) }).Stop()
		b.Fault(kfake.Fault{Err: kerr.CoordinatorLoadInProgress, Count: 3})
		if err := c.Write(context.Background(), "m", mirror.States{"a": {0: {State: mirror.Stopped}}}); err != nil || late.Load() {
			t.Errorf("%v, late: %v", err, late.Load())
		}
	})
}

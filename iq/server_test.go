package iq_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/odradek-go/odradek/iq"
	"github.com/odradek-go/odradek/membership"
)

// curl asks an instance, and returns the status and the lines of the answer.
func curl(t *testing.T, in *instance, path string, header ...string) (status int, lines []string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://"+in.self.String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(header) > 0 {
		req.Header.Set(header[0], header[1])
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for in := bufio.NewScanner(resp.Body); in.Scan(); {
		lines = append(lines, in.Text())
	}
	return resp.StatusCode, lines
}

func TestServerForPeople(t *testing.T) {
	c := newCluster(t, 2, func(_ int, o *iq.Options) { o.Server.MaxEntries = 3 })
	a, b := c.instances[0], c.instances[1]
	for p := range int32(storePartitions) {
		c.instances[p%2].give(t, p, true)
	}
	c.publish()
	for n, key := range []string{"a", "b", "c d", "e", "f"} {
		put(t, key, int64(n), a, b)
	}
	for _, test := range []struct {
		path   string
		status int
		lines  []string // what each has, in this order
	}{
		{"/iq/v1/stores/counts/keys/b", 200, []string{`"found":true,"key":"b","value":1,"timestamp":1`}},
		{"/iq/v1/stores/counts/keys/c%20d", 200, []string{`"key":"c d","value":2`}},
		{"/iq/v1/stores/counts/keys/Yg==?encoding=base64", 200, []string{`"key":"Yg==","value":"AAAAAAAAAAE="`}},
		{"/iq/v1/stores/counts/keys/z", 404, []string{`"found":false`}},
		{"/iq/v1/stores/counts/entries", 200, []string{`"meta"`, `"a"`, `"b"`, `"c d"`, `{"end":true,"more":true}`}},
		{"/iq/v1/stores/counts/entries?limit=4", 200, []string{`"meta"`, `"a"`, `"b"`, `"c d"`, `{"end":true,"more":true}`}},
		{"/iq/v1/stores/counts/entries?limit=3", 200, []string{`"meta"`, `"a"`, `"b"`, `"c d"`, `{"end":true}`}},
		{"/iq/v1/stores/counts/entries?from=c", 200, []string{`"meta"`, `"c d"`, `"e"`, `"f"`, `{"end":true}`}},
		{"/iq/v1/stores/counts/entries?backward=true&limit=2", 200, []string{`"meta"`, `"f"`, `"e"`, `{"end":true}`}},
		{"/iq/v1/stores/counts/entries?from=b&to=e", 200, []string{`"meta"`, `"b"`, `"c d"`, `"e"`, `{"end":true}`}},
		{"/iq/v1/stores/counts/entries?prefix=c", 200, []string{`"meta"`, `"c d"`, `{"end":true}`}},
		{"/iq/v1/stores/counts/entries?limit=0", 400, []string{`"INVALID_QUERY"`}},
		{"/iq/v1/stores/counts/keys/b?lag=x", 400, []string{`"INVALID_QUERY"`}},
		{"/iq/v1/stores/counts/keys/b?lag=-2", 400, []string{`"INVALID_QUERY"`}},
		{"/iq/v1/stores/counts/keys/b?age=-1s", 400, []string{`"INVALID_QUERY"`}},
		{"/iq/v1/stores/counts/keys/b?start=5", 400, []string{`"STORE_TYPE"`}},
		{"/iq/v1/stores/other/keys/b", 404, []string{`"UNKNOWN_STORE"`}},
		{"/iq/v1/stores", 200, []string{`{"counts":[{"partition":0,"active":"` + a.self.String() + `"}`}},
		{"/iq/v1/hosts", 200, []string{`"stores":["counts"]`}},
		{"/iq/v1/lags", 200, []string{`"store":"counts","partition":1,"active":true`}},
	} {
		status, lines := curl(t, b, test.path)
		ok := status == test.status && len(lines) == len(test.lines)
		for i := 0; ok && i < len(lines); i++ {
			ok = strings.Contains(lines[i], test.lines[i])
		}
		if !ok {
			t.Errorf("%s: %d %q; want %d %q", test.path, status, lines, test.status, test.lines)
		}
	}
	if _, lines := curl(t, b, "/iq/v1/stores/counts/keys/b", "Accept", "application/octet-stream"); strings.Join(lines, "") != "\x00\x00\x00\x00\x00\x00\x00\x01" {
		t.Errorf("the bytes of a value: %q", lines)
	}
}

// TestServerLimits: who may not, or is one too many, is told so, and an answer that
// ends too early is seen to.
func TestServerLimits(t *testing.T) {
	c := newCluster(t, 2, func(_ int, o *iq.Options) {
		o.Server.MaxInFlight = 1
		o.Server.Authenticate = func(r *http.Request) error {
			if r.Header.Get("Token") != "secret" {
				return errors.New("no token")
			}
			return nil
		}
		o.Transport.(*iq.HTTPTransport).Authorize = func(r *http.Request) error {
			r.Header.Set("Token", "secret")
			return nil
		}
	})
	a, b := c.instances[0], c.instances[1]
	task := a.give(t, 0, true)
	key := keyIn(0)
	put(t, key, 9, a)
	c.publish()
	if status, lines := curl(t, a, "/iq/v1/hosts"); status != 401 || !strings.Contains(lines[0], "UNAUTHORIZED") {
		t.Errorf("without a token: %d %q", status, lines)
	}
	if v, err := handle(b).Get(t.Context(), key); err != nil || v.Value != 9 {
		t.Errorf("with one: %+v, %v", v, err)
	}
	// A query that waits for its store takes the only place.
	task.gate.Lock()
	ctx, cancel := context.WithCancel(t.Context())
	waiting, before := make(chan error, 1), a.requests.Load()
	go func() {
		_, err := handle(b).Get(ctx, key)
		waiting <- err
	}()
	for a.requests.Load() == before {
		time.Sleep(time.Millisecond)
	}
	busy := func() bool {
		_, lines := curl(t, a, "/iq/v1/hosts", "Token", "secret")
		return strings.Contains(lines[0], "BUSY")
	}
	for !busy() {
	}
	cancel()
	task.gate.Unlock()
	<-waiting
	for busy() {
	}
}

// TestInterrupted: an answer that has no end is not taken for a whole one.
func TestInterrupted(t *testing.T) {
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := json.NewEncoder(w)
		_ = out.Encode(map[string]any{"meta": iq.Meta{}})
		_ = out.Encode(map[string]any{"entry": iq.Entry{Key: []byte("k"), Value: []byte("v")}})
	})}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(listener)
	defer server.Close()
	host := membership.Endpoint{Host: "127.0.0.1", Port: uint16(listener.Addr().(*net.TCPAddr).Port)}
	transport := iq.HTTPTransport{Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	rows, err := transport.Call(t.Context(), host, &iq.Request{Store: "counts", Kind: iq.Range})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	if _, err := rows.Next(); err != nil {
		t.Fatal(err)
	}
	if _, err := rows.Next(); err == io.EOF || !errors.Is(err, iq.ErrInterrupted) {
		t.Errorf("an answer without an end: %v", err)
	}
}

// TestResumed: a client goes on with a range elsewhere when its server breaks off, and
// gets each entry once.
func TestResumed(t *testing.T) {
	const entries = 1000
	c := newCluster(t, 1, nil)
	in := c.instances[0]
	for p := range int32(storePartitions) {
		in.give(t, p, true)
	}
	for n := range entries {
		put(t, fmt.Sprintf("key-%04d", n), int64(n), in)
	}
	c.publish()
	handler := in.Handler()
	var broken atomic.Int32
	breaking := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		broken.Add(1)
		handler.ServeHTTP(&breakingWriter{w, 100}, r)
	})}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go breaking.Serve(listener)
	defer breaking.Close()
	transport := iq.HTTPTransport{Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	client, err := iq.NewClient([]string{listener.Addr().String(), listener.Addr().String(), in.self.String()}, iq.ClientOptions{Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		backward bool
		limit    int
	}{{false, 0}, {true, 0}, {false, 150}, {true, 700}} {
		rows, err := client.Query(t.Context(), &iq.Request{Store: "counts", Kind: iq.Range, Partition: iq.AllPartitions, Backward: test.backward, Limit: test.limit})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for e, err := range rows.All() {
			if err != nil {
				t.Fatal(err)
			}
			want := n
			if test.backward {
				want = entries - 1 - n
			}
			if string(e.Key) != fmt.Sprintf("key-%04d", want) {
				t.Fatalf("%+v: entry %d is %s", test, n, e.Key)
			}
			n++
		}
		if want := test.limit; n != want && (want > 0 || n != entries) {
			t.Errorf("%+v: %d entries", test, n)
		}
	}
	if broken.Load() < 2 {
		t.Error("nothing was broken off")
	}
}

// breakingWriter breaks off after some writes.
type breakingWriter struct {
	http.ResponseWriter
	left int
}

func (w *breakingWriter) Write(b []byte) (int, error) {
	if w.left--; w.left < 0 {
		panic(http.ErrAbortHandler)
	}
	return w.ResponseWriter.Write(b)
}

func (w *breakingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

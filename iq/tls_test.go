package iq_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/odradek-go/odradek/iq"
	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/state"
)

// certificate is one of 127.0.0.1, and who trusts it.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return server.TLS.Certificates[0], pool
}

// callers notes who has asked: by which protocol.
type callers struct {
	mu   sync.Mutex
	seen map[string]int
}

func (c *callers) note(r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[r.Proto]++
}

func (c *callers) take() (seen string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for proto := range c.seen {
		seen += proto
	}
	clear(c.seen)
	return seen
}

// over is a client that speaks one version of HTTP, with TLS if there are roots.
func over(roots *x509.CertPool, version int) *http.Client {
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(version == 1)
	transport.Protocols.SetHTTP2(version == 2)
	transport.Protocols.SetUnencryptedHTTP2(version == 2 && roots == nil)
	return &http.Client{Transport: transport}
}

// TestTransports: the server answers over HTTP/1.1 and HTTP/2, with TLS and without,
// those whom the authentication hook lets in, and so do instances among themselves.
func TestTransports(t *testing.T) {
	cert, roots := certificate(t)
	for _, test := range []struct {
		name    string
		secure  bool
		version int
		proto   string
	}{
		{"HTTP1", false, 1, "HTTP/1.1"},
		{"HTTP2", false, 2, "HTTP/2.0"},
		{"HTTPS1", true, 1, "HTTP/1.1"},
		{"HTTPS2", true, 2, "HTTP/2.0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			trusted, scheme := roots, "https"
			if !test.secure {
				trusted, scheme = nil, "http"
			}
			callers := &callers{seen: make(map[string]int)}
			transport := iq.HTTPTransport{
				Client: over(trusted, test.version), Scheme: scheme,
				Authorize: func(r *http.Request) error {
					r.SetBasicAuth("app", "secret")
					return nil
				},
			}
			c := newCluster(t, 2, func(_ int, o *iq.Options) {
				o.Transport, o.Logger = &transport, slog.New(slog.DiscardHandler)
				if test.secure {
					o.Server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
				}
				o.Server.Authenticate = func(r *http.Request) error {
					if callers.note(r); (r.TLS != nil) != test.secure {
						return errors.New("the connection is of the wrong kind")
					}
					if _, password, _ := r.BasicAuth(); password != "secret" {
						return errors.New("who are you?")
					}
					return nil
				}
			})
			serve(t, c, transport)
			a, b := c.instances[0], c.instances[1]
			const entries = 2000
			for p := range int32(storePartitions) {
				a.give(t, p, true)
			}
			for n := range entries {
				put(t, fmt.Sprintf("key-%05d", n), int64(n), a)
			}
			c.publish()

			client, err := iq.NewClient([]string{b.self.String()}, iq.ClientOptions{Transport: transport})
			if err != nil {
				t.Fatal(err)
			}
			v, err := handle(client).Get(t.Context(), "key-00042") // b forwards it
			if err != nil || v.Value != 42 || v.Meta.Host == "" {
				t.Errorf("a value: %+v, %v", v, err)
			}
			n := 0
			for item, err := range handle(client).Range(t.Context(), state.Bounds[string]{}, state.Forward) {
				if err != nil {
					t.Fatal(err)
				}
				if item.Value != int64(n) {
					t.Fatalf("entry %d is %+v", n, item)
				}
				n++
			}
			if n != entries {
				t.Errorf("%d entries of %d", n, entries)
			}
			if seen := callers.take(); seen != test.proto {
				t.Errorf("the servers were asked by %s, want %s", seen, test.proto)
			}

			without := transport
			without.Authorize = nil
			stranger, err := iq.NewClient([]string{b.self.String()}, iq.ClientOptions{Transport: without})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := handle(stranger).Get(t.Context(), "key-00042"); !errors.Is(err, iq.ErrUnauthorized) || !strings.Contains(err.Error(), "who are you?") {
				t.Errorf("without a password: %v", err)
			}
		})
	}
}

// TestDistrust: a server whose certificate the caller doesn't trust, or that doesn't
// speak TLS, is asked nothing.
func TestDistrust(t *testing.T) {
	cert, roots := certificate(t)
	c := newCluster(t, 2, func(i int, o *iq.Options) {
		o.Logger = slog.New(slog.DiscardHandler)
		if i == 0 {
			o.Server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
		}
	})
	strict := iq.HTTPTransport{Client: over(x509.NewCertPool(), 2), Scheme: "https"}
	secure := iq.HTTPTransport{Client: over(roots, 1), Scheme: "https"}
	serve(t, c, strict, secure)
	for name, q := range map[string]struct {
		to        *instance
		transport iq.HTTPTransport
	}{
		"no roots": {c.instances[0], strict},
		"no TLS":   {c.instances[1], secure},
	} {
		client, err := iq.NewClient([]string{q.to.self.String()}, iq.ClientOptions{Transport: q.transport})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := handle(client).Get(short(t), "k"); !errors.Is(err, iq.ErrUnreachable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// serve has the instances serve by themselves, and be known by that address, until the
// test ends and the callers' connections are closed.
func serve(t *testing.T, c *cluster, callers ...iq.HTTPTransport) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var servers sync.WaitGroup
	for _, in := range c.instances {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		in.self = membership.Endpoint{Host: "127.0.0.1", Port: uint16(listener.Addr().(*net.TCPAddr).Port)}
		servers.Go(func() {
			if err := in.ServeListener(ctx, listener); err != nil {
				t.Errorf("%v: %v", in.self, err)
			}
		})
	}
	t.Cleanup(func() {
		for _, caller := range callers {
			caller.Client.CloseIdleConnections()
		}
		stop()
		servers.Wait()
	})
}

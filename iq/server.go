package iq

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// ServerOptions are the settings of a service's HTTP server. Zero values mean the
// defaults.
type ServerOptions struct {
	// Address is where to listen, host:port; empty: at application.server.
	Address string

	// TLS makes the listener one of HTTPS. The instances' transport must then have
	// the scheme "https".
	TLS *tls.Config

	// Authenticate, if not nil, lets a request in or returns why not. Requests of
	// other instances pass it as well: see HTTPTransport.Authorize. What it returns
	// is told to the caller.
	Authenticate func(*http.Request) error

	// MaxInFlight is how many queries are answered at once; more get ErrBusy. 0:
	// 1024.
	MaxInFlight int

	// MaxEntries is how many entries an answer of the readable endpoints has at
	// most, which a request can lower by its limit; 0: 10,000. The endpoint of
	// clients and instances, whose readers take an entry at a time, has no limit.
	MaxEntries int

	// Timeout bounds each query from outside; 0: 30 s.
	Timeout time.Duration

	// WriteTimeout bounds how long the server waits for a reader to take more of an
	// answer; 0: 10 s.
	WriteTimeout time.Duration
}

func (o *ServerOptions) setDefaults() {
	orDefault(&o.MaxInFlight, 1024)
	orDefault(&o.MaxEntries, 10_000)
	orDefault(&o.Timeout, 30*time.Second)
	orDefault(&o.WriteTimeout, 10*time.Second)
}

const (
	// maxRequest bounds the body of a query, in bytes: it holds a few keys.
	maxRequest = 4 << 20

	// flushEntries is after how many entries a stream is flushed.
	flushEntries = 128
)

// Handler answers queries over HTTP:
//
//	POST /iq/v1/query                        of clients and instances
//	GET  /iq/v1/stores                       the stores and who has them
//	GET  /iq/v1/hosts                        the instances and what they have
//	GET  /iq/v1/lags                         how far the stores here are behind
//	GET  /iq/v1/stores/{store}/keys/{key}    one value
//	GET  /iq/v1/stores/{store}/entries       many, a line of JSON each
//	GET  /iq/v1/stores/{store}/windows/{key} the windows or sessions of a key
//
// The last three take keys as JSON, a string without its quotes, and give keys and
// values as JSON by the serdes of the store. Keys of windows and sessions are without
// their times, which are in milliseconds. The parameters are:
//
//	encoding=base64    keys and values are as the serdes encode them; the header
//	                   "Accept: application/octet-stream" has a value's bytes alone
//	start, end         of the window, or session, whose value is asked for
//	as-of              when the value was valid, in a versioned store
//	from, to, prefix   of the keys, for entries
//	earliest, latest   of the windows or sessions
//	backward=true      by falling key or time
//	limit=100          of entries
//	lag=100            a copy may answer that is at most so many records behind; −1: any
//	age=5s             or one that had everything so long ago
//	position=JSON      wait for these records: {"topic":{"0":41}}
//	timeout=2s         for how long to try
//
// A line {"end":true} is the last of many entries, and an answer without it is not
// whole. It is {"end":true,"more":true} where there are more than MaxEntries, and no
// limit has asked for less.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+queryPath, s.serveQuery)
	mux.HandleFunc("GET /iq/v1/stores", s.serveStores)
	mux.HandleFunc("GET /iq/v1/hosts", s.serveHosts)
	mux.HandleFunc("GET /iq/v1/lags", s.serveLags)
	mux.HandleFunc("GET /iq/v1/stores/{store}/keys/{key}", s.serveKey)
	mux.HandleFunc("GET /iq/v1/stores/{store}/entries", s.serveEntries)
	mux.HandleFunc("GET /iq/v1/stores/{store}/windows/{key}", s.serveWindows)
	return s.guard(mux)
}

// guard lets in who may, and no more at once than there is room for.
func (s *Service) guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if check := s.opts.Server.Authenticate; check != nil {
			if err := check(r); err != nil {
				s.writeError(w, &Error{Kind: ErrUnauthorized, Partition: AllPartitions, Err: err})
				return
			}
		}
		select {
		case s.inFlight <- struct{}{}:
			defer func() { <-s.inFlight }()
		default:
			s.writeError(w, &Error{Kind: ErrBusy, Partition: AllPartitions})
			return
		}
		h.ServeHTTP(w, r)
	})
}

// within bounds a request's context by what the server allows and what the caller
// wants.
func (s *Service) within(r *http.Request, wants string) (context.Context, context.CancelFunc, error) {
	limit := s.opts.Server.Timeout
	if wants != "" {
		d, err := time.ParseDuration(wants)
		if err != nil {
			return nil, nil, &Error{Kind: ErrInvalidQuery, Partition: AllPartitions, Err: err}
		}
		limit = min(limit, d)
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	return ctx, cancel, nil
}

// begin begins to answer a query within that time. It returns nil where that failed, and
// has then written why.
func (s *Service) begin(w http.ResponseWriter, r *http.Request, req *Request, wants string, forward bool) *Rows {
	ctx, cancel, err := s.within(r, wants)
	if err != nil {
		s.writeError(w, err)
		return nil
	}
	rows, err := s.query(ctx, req, forward)
	if err != nil {
		cancel()
		s.writeError(w, err)
		return nil
	}
	rows.onClose(cancel)
	return rows
}

func (s *Service) writeError(w http.ResponseWriter, err error) {
	we, status := toWire(err, s.local.host)
	s.writeJSON(w, status, line{Error: &we})
}

func (s *Service) writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":{"code":"INTERNAL","message":"the answer can't be written as JSON"}}`)
		s.log.Warn("the answer to a query can't be written as JSON", "err", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if _, err := w.Write(append(body, '\n')); err != nil {
		s.log.Debug("the answer to a query could not be sent", "err", err)
	}
}

// serveQuery answers clients and other instances.
func (s *Service) serveQuery(w http.ResponseWriter, r *http.Request) {
	req := Request{Partition: AllPartitions}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&req); err != nil {
		s.writeError(w, fail(ErrInvalidQuery, &req, err))
		return
	}
	rows := s.begin(w, r, &req, r.Header.Get(timeoutHeader), r.Header.Get(forwardedHeader) == "")
	if rows == nil {
		return
	}
	s.stream(w, rows, 0, func(e *Entry) (any, error) { return line{Entry: e}, nil })
}

// stream writes an answer a line at a time, as fast as it is read. If cut isn't 0 it ends
// after so many entries, and says so if there are more.
func (s *Service) stream(w http.ResponseWriter, rows *Rows, cut int, show func(*Entry) (any, error)) {
	defer rows.Close()
	w.Header().Set("Content-Type", lineType)
	out := json.NewEncoder(w)
	control := http.NewResponseController(w)
	flush := func() error {
		if err := control.SetWriteDeadline(time.Now().Add(s.opts.Server.WriteTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
		return control.Flush()
	}
	err := out.Encode(line{Meta: &rows.Meta})
	for n := 0; err == nil; n++ {
		if n%flushEntries == 0 {
			if err = flush(); err != nil {
				break
			}
		}
		var e Entry
		var shown any
		if e, err = rows.Next(); err == io.EOF {
			err = out.Encode(line{End: true})
			break
		} else if err == nil && cut > 0 && n == cut {
			err = out.Encode(line{End: true, More: true})
			break
		} else if err == nil {
			shown, err = show(&e)
		}
		if err != nil {
			we, _ := toWire(err, s.local.host)
			err = out.Encode(line{Error: &we})
			break
		}
		err = out.Encode(shown)
	}
	if err != nil { // whoever reads is gone, and knows that the end is missing
		s.log.Debug("the answer to a query could not be sent", "err", err)
	}
}

// Serve listens, at Address or else at application.server, until ctx ends, with
// queries under way given a moment to finish. It returns nil then, or the error that
// kept it from listening.
func (s *Service) Serve(ctx context.Context) error {
	address := s.opts.Server.Address
	if address == "" && s.cfg.Self != nil {
		address = s.cfg.Self.String()
	}
	if address == "" {
		return errors.New("iq: no address to listen at: set application.server, or ServerOptions.Address")
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return s.ServeListener(ctx, listener)
}

// closeTime is how long queries under way have to finish when a server ends.
const closeTime = 5 * time.Second

// ServeListener is Serve on a listener, which it closes.
func (s *Service) ServeListener(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       time.Minute,
		TLSConfig:         s.opts.Server.TLS,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		Protocols:         new(http.Protocols),
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		if server.Shutdown(grace) != nil {
			server.Close()
		}
	})
	var err error
	if server.TLSConfig != nil {
		err = server.ServeTLS(listener, "", "")
	} else {
		err = server.Serve(listener)
	}
	if !stop() {
		<-ended
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

package iq

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/odradek-go/odradek/state"
)

// What follows answers those who ask with curl; the parameters are in the docs of
// [Service.Handler].

// answer is a value, or a missing one.
type answer struct {
	Found bool `json:"found"`
	shown
	Meta
}

// shown is an entry to be read by people.
type shown struct {
	Key       json.RawMessage `json:"key,omitempty"`
	Value     json.RawMessage `json:"value,omitempty"`
	Timestamp *int64          `json:"timestamp,omitempty"`
	Start     *int64          `json:"start,omitempty"`
	End       *int64          `json:"end,omitempty"`
}

// show writes an entry as JSON.
func (a *asked) show(e *Entry) (s shown, err error) {
	if a.base64() {
		s.Key, err = json.Marshal(e.Key)
		if err == nil {
			s.Value, err = json.Marshal(e.Value)
		}
	} else if s.Key, err = a.json.DecodeKey(e.Key); err == nil {
		s.Value, err = a.json.DecodeValue(e.Value)
	}
	if err != nil {
		return s, fail(nil, &a.Request, fmt.Errorf("show an entry as JSON: %w", err))
	}
	if e.Timestamp >= 0 {
		s.Timestamp = &e.Timestamp
	}
	if _, ok := a.info.Kind.(state.WindowReader); ok {
		s.Start, s.End = &e.Start, &e.End
	}
	return s, nil
}

// serveKey answers with one value. It takes as-of for a versioned store, start for a
// window, and start and end for a session.
func (s *Service) serveKey(w http.ResponseWriter, r *http.Request) {
	a, err := s.parse(r)
	if err == nil {
		a.Key, err = a.key(r.PathValue("key"))
	}
	if err != nil {
		s.writeError(w, err)
		return
	}
	a.Kind = Get
	switch {
	case a.form.Has("as-of"):
		a.Kind = GetAsOf
		err = a.number("as-of", &a.Latest)
	case a.form.Has("start"):
		a.Kind = GetWindow
		err = errors.Join(a.number("start", &a.Earliest), a.number("end", &a.Latest))
	}
	if err != nil {
		s.writeError(w, fail(ErrInvalidQuery, &a.Request, err))
		return
	}
	rows := s.begin(w, r, &a.Request, a.form.Get("timeout"), true)
	if rows == nil {
		return
	}
	defer rows.Close()
	out, status := answer{Meta: rows.Meta}, http.StatusOK
	e, err := rows.Next()
	raw := r.Header.Get("Accept") == "application/octet-stream"
	switch {
	case err == io.EOF:
		status = http.StatusNotFound
	case err != nil:
		s.writeError(w, err)
		return
	case raw:
		w.Header().Set("Content-Type", "application/octet-stream")
		if _, err := w.Write(e.Value); err != nil {
			s.log.Debug("the answer to a query could not be sent", "err", err)
		}
		return
	default:
		out.Found = true
		if out.shown, err = a.show(&e); err != nil {
			s.writeError(w, err)
			return
		}
	}
	s.writeJSON(w, status, out)
}

// serveEntries answers with the entries from and to keys, or of a prefix; and in a
// store of windows or sessions those from earliest to latest besides.
func (s *Service) serveEntries(w http.ResponseWriter, r *http.Request) {
	a, err := s.parse(r)
	if err != nil {
		s.writeError(w, err)
		return
	}
	_, windows := a.info.Kind.(state.WindowReader)
	switch {
	case windows:
		a.Kind = FetchRange
		err = a.keys()
	case a.form.Has("prefix"):
		a.Kind = Prefix
		a.Key, err = a.key(a.form.Get("prefix"))
	default:
		a.Kind = Range
		err = a.keys()
	}
	s.serveMany(w, r, a, err)
}

// serveWindows answers with the windows of a key from earliest to latest.
func (s *Service) serveWindows(w http.ResponseWriter, r *http.Request) {
	a, err := s.parse(r)
	if err != nil {
		s.writeError(w, err)
		return
	}
	a.Kind = Fetch
	a.Key, err = a.key(r.PathValue("key"))
	s.serveMany(w, r, a, err)
}

func (s *Service) serveMany(w http.ResponseWriter, r *http.Request, a *asked, err error) {
	cut := 0
	if err == nil {
		cut, err = a.limit(s.opts.Server.MaxEntries)
	}
	if err != nil {
		s.writeError(w, err)
		return
	}
	if !a.form.Has("latest") {
		a.Latest = Forever
	}
	rows := s.begin(w, r, &a.Request, a.form.Get("timeout"), true)
	if rows == nil {
		return
	}
	s.stream(w, rows, cut, func(e *Entry) (any, error) { return a.show(e) })
}

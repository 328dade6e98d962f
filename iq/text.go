package iq

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

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

// asked is a request as it came.
type asked struct {
	Request
	info *StoreInfo
	json state.JSON
	form url.Values
}

// parse reads what all requests have in common.
func (s *Service) parse(r *http.Request) (*asked, error) {
	a := &asked{Request: Request{Store: r.PathValue("store"), Partition: AllPartitions}, form: r.URL.Query()}
	if a.info = s.Store(a.Store); a.info == nil {
		return nil, fail(ErrUnknownStore, &a.Request, nil)
	}
	codec, ok := a.info.Kind.(interface{ JSON() state.JSON })
	if !ok {
		return nil, fail(ErrStoreType, &a.Request, nil)
	}
	a.json = codec.JSON()
	err := errors.Join(
		a.number("lag", &a.Accept.Lag), a.number("earliest", &a.Earliest), a.number("latest", &a.Latest),
	)
	if text := a.form.Get("age"); text != "" {
		var e error
		a.Accept.Age, e = time.ParseDuration(text)
		err = errors.Join(err, e)
	}
	if text := a.form.Get("position"); text != "" {
		err = errors.Join(err, json.Unmarshal([]byte(text), &a.Accept.Position))
	}
	if text := a.form.Get("backward"); text != "" {
		var e error
		a.Backward, e = strconv.ParseBool(text)
		err = errors.Join(err, e)
	}
	if err != nil {
		return nil, fail(ErrInvalidQuery, &a.Request, err)
	}
	return a, nil
}

func (a *asked) number(name string, to *int64) (err error) {
	if text := a.form.Get(name); text != "" {
		if *to, err = strconv.ParseInt(text, 10, 64); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// key encodes a key that is given as text.
func (a *asked) key(text string) ([]byte, error) {
	if a.base64() {
		key, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fail(ErrInvalidQuery, &a.Request, err)
		}
		return key, nil
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		return nil, fail(ErrInvalidQuery, &a.Request, err)
	}
	key, err := a.json.EncodeKey(quoted)
	if err != nil { // it is no string
		key, err = a.json.EncodeKey([]byte(text))
	}
	if err != nil {
		return nil, fail(ErrInvalidQuery, &a.Request, fmt.Errorf("the key %q: %w", text, err))
	}
	return key, nil
}

func (a *asked) base64() bool { return a.form.Get("encoding") == "base64" }

// keys encodes the bounds of a range.
func (a *asked) keys() (err error) {
	for name, to := range map[string]*[]byte{"from": &a.From, "to": &a.To} {
		if a.form.Has(name) {
			if *to, err = a.key(a.form.Get(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// limit bounds an answer by what the server allows.
func (a *asked) limit(most int) error {
	limit := int64(most)
	if err := a.number("limit", &limit); err != nil || limit < 1 {
		return fail(ErrInvalidQuery, &a.Request, errors.Join(err, errors.New("the limit must be at least 1")))
	}
	a.Limit = int(min(limit, int64(most)))
	return nil
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
	ctx, cancel, err := s.within(r, a.form.Get("timeout"))
	if err != nil {
		s.writeError(w, err)
		return
	}
	defer cancel()
	rows, err := s.query(ctx, &a.Request, true)
	if err != nil {
		s.writeError(w, err)
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
	if err == nil {
		err = a.limit(s.opts.Server.MaxEntries)
	}
	if err != nil {
		s.writeError(w, err)
		return
	}
	if !a.form.Has("latest") {
		a.Latest = Forever
	}
	ctx, cancel, err := s.within(r, a.form.Get("timeout"))
	if err != nil {
		s.writeError(w, err)
		return
	}
	defer cancel()
	rows, err := s.query(ctx, &a.Request, true)
	if err != nil {
		s.writeError(w, err)
		return
	}
	s.stream(w, rows, line{Meta: &rows.Meta}, func(e *Entry) (any, error) { return a.show(e) })
}

// serveStores tells who has the stores.
func (s *Service) serveStores(w http.ResponseWriter, _ *http.Request) {
	snapshot := s.router.Snapshot()
	type route struct {
		Partition int32    `json:"partition"`
		Active    string   `json:"active,omitempty"`
		Standbys  []string `json:"standbys,omitempty"`
	}
	out := make(map[string][]route)
	for _, name := range snapshot.Stores() {
		routes := []route{}
		for _, known := range snapshot.stores[name].byPartition {
			r := route{Partition: known.Partition}
			if known.HasActive() {
				r.Active = known.Active.String()
			}
			for _, standby := range known.Standbys {
				r.Standbys = append(r.Standbys, standby.String())
			}
			routes = append(routes, r)
		}
		out[name] = routes
	}
	s.writeJSON(w, http.StatusOK, out)
}

// serveHosts tells what the instances have.
func (s *Service) serveHosts(w http.ResponseWriter, _ *http.Request) {
	type host struct {
		Endpoint      string   `json:"endpoint"`
		Stores        []string `json:"stores"`
		StandbyStores []string `json:"standbyStores"`
	}
	out := []host{}
	for _, h := range s.router.Snapshot().Hosts {
		out = append(out, host{h.Endpoint.String(), h.Stores, h.StandbyStores})
	}
	s.writeJSON(w, http.StatusOK, out)
}

// serveLags tells how far the stores here are behind.
func (s *Service) serveLags(w http.ResponseWriter, r *http.Request) {
	ctx, cancel, err := s.within(r, r.URL.Query().Get("timeout"))
	if err == nil {
		defer cancel()
		var lags []Lag
		if lags, err = s.Lags(ctx); err == nil {
			s.writeJSON(w, http.StatusOK, lags)
			return
		}
	}
	s.writeError(w, err)
}

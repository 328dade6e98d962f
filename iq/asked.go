package iq

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/odradek-go/odradek/state"
)

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

// limit bounds an answer by what is asked for, and by what the server allows. Where the
// latter is less it returns that, and one entry more is looked for, which is not shown.
func (a *asked) limit(allowed int) (cut int, err error) {
	limit := int64(math.MaxInt64)
	if err := a.number("limit", &limit); err != nil || limit < 1 {
		return 0, fail(ErrInvalidQuery, &a.Request, errors.Join(err, errors.New("the limit must be at least 1")))
	}
	if limit > int64(allowed) {
		a.Limit = allowed + 1
		return allowed, nil
	}
	a.Limit = int(limit)
	return 0, nil
}

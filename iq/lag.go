package iq

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/odradek-go/odradek/state"
)

// Lag is how far a store partition of this instance is behind its changelog (Java's
// LagInfo).
type Lag struct {
	Store     string `json:"store"`
	Partition int32  `json:"partition"`
	Active    bool   `json:"active"`

	// Position and End are the offsets up to which the store has its changelog, and
	// at which that ends; −1 for an active store, which has no lag, and one without
	// a changelog.
	Position int64 `json:"position"`
	End      int64 `json:"end"`

	// Lag is the number of records between them, −1 where that is not known: the store
	// was the active one when the group was last heard of.
	Lag int64 `json:"lag"`
}

// Lags tells how far the stores of this instance are behind (Java's
// allLocalStorePartitionLags), by name and partition. It asks the brokers where the
// changelogs end, if that was not done just now.
func (s *Service) Lags(ctx context.Context) ([]Lag, error) {
	lags := []Lag{}
	for of := range s.cfg.Registry.All() {
		if of.Global { // it is behind nothing but its topics
			continue
		}
		lag, ok, err := s.lag(ctx, of)
		if err != nil {
			return nil, &Error{Store: of.Name, Partition: of.Partition, Err: err}
		}
		if ok {
			lags = append(lags, lag)
		}
	}
	slices.SortFunc(lags, func(a, b Lag) int {
		if c := strings.Compare(a.Store, b.Store); c != 0 {
			return c
		}
		return int(a.Partition) - int(b.Partition)
	})
	return lags, nil
}

// lag is that of one store; ok is false for one that has moved away meanwhile.
func (s *Service) lag(ctx context.Context, of *state.Readable) (lag Lag, ok bool, err error) {
	look := func() (topic string, next int64, logged bool, err error) {
		v, err := of.Views.Look(ctx)
		if err != nil {
			return "", 0, false, err
		}
		defer v.Close()
		if lag.Active = of.Owner.Active(); of.Owner.Unconfirmed() {
			lag.Lag = -1
		}
		topic, next, logged = of.Owner.Changelog()
		return topic, next, logged, nil
	}
	lag = Lag{Store: of.Name, Partition: of.Partition, Position: -1, End: -1}
	topic, _, logged, err := look()
	if err == nil && logged {
		key, recent := changelog{topic, of.Partition}, s.local.lags.recent()
		if err := s.local.lags.refresh(ctx, key, recent); err != nil {
			return lag, false, err
		}
		if _, lag.Position, logged, err = look(); err == nil && logged {
			lag.Lag, _ = s.local.lags.of(key, lag.Position, recent)
			lag.End = lag.Position + lag.Lag
		}
	}
	if errors.Is(err, state.ErrClosed) {
		return lag, false, nil
	}
	return lag, err == nil, err
}

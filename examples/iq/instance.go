package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sync/errgroup"

	"github.com/odradek-go/odradek/iq"
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/streams"
)

// topology counts words.
func topology() *streams.Topology {
	counted := streams.MaterializedWith("counts", serde.String, serde.Int64)
	counted.StoreType = streams.InMemory
	b := streams.NewBuilder()
	lines := streams.Stream(b, inputTopic, streams.ConsumedWith(serde.String, serde.String))
	words := streams.FlatMapValues(lines, func(line string) []string {
		return strings.FieldsFunc(strings.ToLower(line), func(r rune) bool { return !unicode.IsLetter(r) })
	})
	streams.GroupBy(words, func(_, word string) string { return word },
		streams.GroupedWith(serde.String, serde.String).As("words")).Count(counted)
	return b.Build()
}

// instance is one instance of the application.
type instance struct {
	app    *streams.App
	counts iq.KeyValue[string, int64]
}

// newInstance makes an instance that others find at address.
func newInstance(brokers []string, address string, logger *slog.Logger) (*instance, error) {
	app, err := streams.NewApp(topology(), streams.Config{
		ApplicationID:     "iq-example",
		Brokers:           brokers,
		ApplicationServer: address,
		Logger:            logger,
	})
	if err != nil {
		return nil, err
	}
	return &instance{app, iq.NewKeyValue(app.Queries(), "counts", serde.String, serde.Int64)}, nil
}

// handler serves our own requests, and those that instances make to each other.
func (in *instance) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/iq/", in.app.Queries().Handler())
	mux.HandleFunc("GET /words/{word}", in.serveWord)
	return mux
}

// serveWord answers with the count of a word, whichever instance has it. For a moment
// of rebalancing, a copy will do that is little behind.
func (in *instance) serveWord(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	word := strings.ToLower(r.PathValue("word"))
	count, err := in.counts.Accepting(iq.Accept{Lag: 1000}).Get(ctx, word)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{ // whoever asked may be gone
		"word": word, "count": count.Value, "host": count.Meta.Host, "lag": count.Meta.Lag,
	})
}

// run runs the instance until ctx ends. It answers as long as it has something.
func (in *instance) run(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: in.handler(), ReadHeaderTimeout: 10 * time.Second}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		defer server.Close()
		return in.app.Run(ctx)
	})
	return group.Wait()
}

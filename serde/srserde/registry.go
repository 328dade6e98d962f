package srserde

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/twmb/franz-go/pkg/sr"
)

// Registry is a schema registry as the serdes of an application use it. It remembers
// schemas, which never change.
type Registry struct {
	client *sr.Client

	mu      sync.Mutex
	schemas map[int]schema // by id
}

// schema is a schema with those that it refers to, each before those that use it.
type schema struct {
	kind       sr.SchemaType
	text       string
	references []string
}

// NewRegistry returns a registry.
func NewRegistry(client *sr.Client) *Registry {
	return &Registry{client: client, schemas: make(map[int]schema)}
}

// schema returns the schema with an id.
func (r *Registry) schema(id int) (schema, error) {
	r.mu.Lock()
	s, ok := r.schemas[id]
	r.mu.Unlock()
	if ok {
		return s, nil
	}
	err := retry(func(ctx context.Context) error {
		found, err := r.client.SchemaByID(ctx, id)
		if err != nil {
			return err
		}
		s = schema{kind: found.Type, text: found.Schema}
		s.references, err = r.referenced(ctx, found, nil, make(map[string]bool))
		return err
	})
	if err != nil {
		return schema{}, fmt.Errorf("srserde: look up the schema with id %d: %w", id, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.schemas[id] = s
	return s, nil
}

// referenced adds the schemas that s refers to, those that they refer to first.
func (r *Registry) referenced(ctx context.Context, s sr.Schema, to []string, seen map[string]bool) ([]string, error) {
	for _, ref := range s.References {
		key := fmt.Sprintf("%s %d", ref.Subject, ref.Version)
		if seen[key] {
			continue
		}
		seen[key] = true
		found, err := r.client.SchemaByVersion(ctx, ref.Subject, ref.Version)
		if err != nil {
			return nil, fmt.Errorf("version %d of subject %q, which it refers to: %w", ref.Version, ref.Subject, err)
		}
		if to, err = r.referenced(ctx, found.Schema, to, seen); err != nil {
			return nil, err
		}
		to = append(to, found.Schema.Schema)
	}
	return to, nil
}

// register returns the id of a schema under a subject, where it is registered if it isn't
// there and register says so.
func (r *Registry) register(subject string, s sr.Schema, register bool) (id int, err error) {
	err = retry(func(ctx context.Context) error {
		if register {
			id, err = r.client.RegisterSchema(ctx, subject, s, -1, -1)
			return err
		}
		found, err := r.client.LookupSchema(ctx, subject, s)
		id = found.ID
		return err
	})
	if err == nil {
		return id, nil
	}
	if register {
		return 0, fmt.Errorf("srserde: register the schema under subject %q: %w", subject, err)
	}
	return 0, fmt.Errorf("srserde: look up the schema under subject %q, where it must be registered: %w", subject, err)
}

// version is like register, and returns the schema's version under the subject.
func (r *Registry) version(subject string, s sr.Schema, register bool) (version int, err error) {
	if register {
		if _, err := r.register(subject, s, true); err != nil {
			return 0, err
		}
	}
	err = retry(func(ctx context.Context) error {
		found, err := r.client.LookupSchema(ctx, subject, s)
		version = found.Version
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("srserde: look up the schema under subject %q: %w", subject, err)
	}
	return version, nil
}

// patience is for how long a registry that does not answer is asked again.
const patience = 30 * time.Second

// retry asks the registry until it answers.
func retry(ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	again := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMaxInterval(2*time.Second),
		backoff.WithMaxElapsedTime(patience),
	)
	return backoff.Retry(func() error {
		err := ask(ctx)
		var answer *sr.ResponseError
		if errors.As(err, &answer) && answer.StatusCode < 500 && answer.StatusCode != http.StatusTooManyRequests {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(again, ctx))
}

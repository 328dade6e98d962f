package streams

import (
	"fmt"
	"io"
	"os"
	"reflect"
	"sync"
)

// Printed says how a stream is printed.
type Printed[K, V any] struct {
	// Name is the operator's; empty: generated.
	Name string

	// Label begins each line; empty: the operator's name.
	Label string

	// To is what is printed to, one line at a time; nil: the standard output.
	// An error of it is one of the record.
	To io.Writer

	// Format returns what is printed of a record; nil: key and value with a comma
	// between, and null for what is null.
	Format func(K, V) string
}

// Print prints each record, and that is the end of it.
func (s *KStream[K, V]) Print(options ...Printed[K, V]) {
	p := only(s.b, "Print", options)
	p.Name = s.b.name(p.Name, printPrefix)
	if p.Label == "" {
		p.Label = p.Name
	}
	if p.To == nil {
		p.To = os.Stdout
	}
	var oneLine sync.Mutex // of all tasks
	operator[K, V, K, V](s, p.Name, func(*taskContext) (running, error) {
		return &printNode[K, V]{Printed: p, mu: &oneLine}, nil
	})
}

type printNode[K, V any] struct {
	emitter[K, V]
	Printed[K, V]
	mu *sync.Mutex
}

func (n *printNode[K, V]) receive(r Record[K, V]) error {
	text := ""
	if n.Format != nil {
		text = n.Format(r.Key, r.Value)
	} else {
		text = printed(r.Key, r.KeyNull) + ", " + printed(r.Value, r.ValueNull)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, err := fmt.Fprintf(n.To, "[%s]: %s\n", n.Label, text); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// printed is a key or a value as text: what it points to, where it is a pointer.
func printed(v any, null bool) string {
	if null {
		return "null"
	}
	if p := reflect.ValueOf(v); p.Kind() == reflect.Pointer {
		if _, ok := v.(fmt.Stringer); !ok {
			return fmt.Sprint(p.Elem())
		}
	}
	return fmt.Sprint(v)
}

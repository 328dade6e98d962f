package iq_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/odradek-go/odradek/iq"
	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

// short bounds queries that must fail.
func short(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// TestGetAnywhere: every instance, and a client, gives the same answer, with whoever
// has it named.
func TestGetAnywhere(t *testing.T) {
	c := newCluster(t, 3, nil)
	for p := range int32(storePartitions) {
		c.instances[p%3].give(t, p, true)
	}
	c.publish()
	client, err := iq.NewClient([]string{c.instances[0].self.String(), c.instances[1].self.String()}, iq.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	queriers := []iq.Querier{c.instances[0], c.instances[1], c.instances[2], client}
	for n := range 40 {
		key := fmt.Sprint("word-", n)
		put(t, key, int64(n), c.instances...)
		p := iq.DefaultPartition([]byte(key), storePartitions)
		for i, q := range queriers {
			v, err := handle(q).Get(t.Context(), key)
			if err != nil || !v.OK || v.Value != int64(n) || v.Timestamp != int64(n) {
				t.Fatalf("%s from querier %d: %+v, %v", key, i, v, err)
			}
			if v.Meta.Host != c.instances[p%3].self.String() || !v.Meta.Active || v.Meta.Partition != p {
				t.Errorf("%s is in %d, the answer is from %+v", key, p, v.Meta)
			}
		}
	}
	if v, err := handle(client).Get(t.Context(), "nothing"); err != nil || v.OK {
		t.Errorf("a key that is not there: %+v, %v", v, err)
	}
}

func TestErrors(t *testing.T) {
	c := newCluster(t, 2, nil)
	a, b := c.instances[0], c.instances[1]
	key := keyIn(1)
	if _, err := handle(a).Get(short(t), key); !errors.Is(err, iq.ErrNotReady) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("before the router knows anything: %v", err)
	}
	a.give(t, 1, true)
	c.publish()
	for name, q := range map[string]iq.Querier{"here": a, "through another": b} {
		if _, err := iq.NewKeyValue(q, "other", serde.String, serde.Int64).Get(t.Context(), key); !errors.Is(err, iq.ErrUnknownStore) {
			t.Errorf("%s: an unknown store: %v", name, err)
		}
		if _, err := iq.NewWindow(q, "counts", serde.String, serde.Int64).Get(t.Context(), key, 0); !errors.Is(err, iq.ErrStoreType) {
			t.Errorf("%s: another kind of store: %v", name, err)
		}
		if _, err := handle(q).Get(short(t), keyIn(2)); !errors.Is(err, iq.ErrMigrated) {
			t.Errorf("%s: a partition that nobody has: %v", name, err)
		}
	}
	a.stopped.Store(true)
	began := time.Now()
	if _, err := handle(a).Get(t.Context(), key); !errors.Is(err, iq.ErrNotRunning) || !errors.Is(err, errStopped) {
		t.Errorf("not running: %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v to say that it is not running", took)
	}
	_, err := handle(b).Get(short(t), key)
	var e *iq.Error
	if !errors.Is(err, iq.ErrNotRunning) || !errors.As(err, &e) || e.Store != "counts" || e.Partition != 1 {
		t.Errorf("the other one is not running: %v", err)
	}
}

// TestOneHop: two instances that take each other for the owner don't send a query to
// and fro.
func TestOneHop(t *testing.T) {
	c := newCluster(t, 2, nil)
	a, b := c.instances[0], c.instances[1]
	all := []int32{0, 1, 2, 3}
	a.Router().Update(1, []membership.EndpointPartitions{has(b.self, source, all, nil)}, map[string]int{source: storePartitions})
	b.Router().Update(1, []membership.EndpointPartitions{has(a.self, source, all, nil)}, map[string]int{source: storePartitions})
	if _, err := handle(a).Get(short(t), "k"); !errors.Is(err, iq.ErrMigrated) {
		t.Errorf("%v", err)
	}
	if n := a.requests.Load(); n > 0 {
		t.Errorf("the first instance got its query back %d times", n)
	}
	if n := b.requests.Load(); n < 2 {
		t.Errorf("the other one was asked %d times, not again and again", n)
	}
}

// TestMovesWhileAsked: a query waits for its partition, which is nowhere at first.
func TestMovesWhileAsked(t *testing.T) {
	c := newCluster(t, 2, nil)
	a, b := c.instances[0], c.instances[1]
	key := keyIn(3)
	a.give(t, 3, true)
	put(t, key, 1, a)
	c.publish()
	a.take(t, 3) // the map is out of date
	answer := make(chan error, 1)
	go func() {
		v, err := handle(a).Get(t.Context(), key)
		if err == nil && v.Value != 2 {
			err = fmt.Errorf("the answer is %+v", v)
		}
		answer <- err
	}()
	time.Sleep(20 * time.Millisecond)
	b.give(t, 3, true)
	put(t, key, 2, b)
	c.publish()
	if err := <-answer; err != nil {
		t.Error(err)
	}
}

// TestCopies: a copy answers only if the query accepts how far it is behind.
func TestCopies(t *testing.T) {
	for _, there := range []string{"here", "elsewhere"} {
		t.Run(there, func(t *testing.T) {
			c := newCluster(t, 2, nil)
			a, b := c.instances[0], c.instances[1]
			q := a
			if there == "elsewhere" {
				q = b
			}
			key := keyIn(0)
			task := a.give(t, 0, false)
			put(t, key, 5, a)
			c.publish()
			c.ends[0] = 100
			get := func(next int64, accept iq.Accept) (iq.Value[int64], error) {
				task.with(func() { task.next = next })
				return handle(q).Accepting(accept).Get(short(t), key)
			}
			if _, err := get(100, iq.Accept{}); !errors.Is(err, iq.ErrMigrated) {
				t.Errorf("no staleness accepted: %v", err)
			}
			if v, err := get(90, iq.Accept{Lag: 10}); err != nil || v.Value != 5 || v.Meta.Active || v.Meta.Lag != 10 || v.Meta.Host != a.self.String() {
				t.Errorf("10 behind, 10 accepted: %+v, %v", v, err)
			}
			if _, err := get(89, iq.Accept{Lag: 10}); !errors.Is(err, iq.ErrTooStale) {
				t.Errorf("11 behind, 10 accepted: %v", err)
			}
			if _, err := get(89, iq.Accept{Age: time.Hour}); !errors.Is(err, iq.ErrTooStale) {
				t.Errorf("it never had all: %v", err)
			}
			if v, err := get(0, iq.Accept{Lag: iq.AnyLag}); err != nil || v.Value != 5 || v.Meta.Lag != 100 {
				t.Errorf("any accepted: %+v, %v", v, err)
			}
			if v, err := get(100, iq.Accept{Age: time.Hour}); err != nil || v.Value != 5 || v.Meta.Age < 0 || v.Meta.Age > time.Hour {
				t.Errorf("it has all: %+v, %v", v, err)
			}
			if _, err := get(100, iq.Accept{Age: time.Nanosecond}); !errors.Is(err, iq.ErrTooStale) {
				t.Errorf("a nanosecond: %v", err)
			}
			if _, err := get(100, iq.Accept{Lag: iq.AnyLag, Position: iq.Position{source: {0: 1}}}); !errors.Is(err, iq.ErrMigrated) {
				t.Errorf("a position, which a copy doesn't know: %v", err)
			}
			task.with(func() { task.loading = true })
			if _, err := get(100, iq.Accept{Lag: iq.AnyLag}); !errors.Is(err, iq.ErrMigrated) {
				t.Errorf("loaded in bulk: %v", err)
			}
		})
	}
}

// TestUnknownLag: where the brokers don't say where the changelog ends, or don't answer,
// only a query is answered that accepts any lag, or one of a time for which the copy is
// known to have had all.
func TestUnknownLag(t *testing.T) {
	for name, fail := range map[string]func(*cluster){
		"no broker": func(c *cluster) { c.listErr = errors.New("no broker") },
		"no answer": func(c *cluster) { c.listWait = make(chan struct{}) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 1, nil)
			a := c.instances[0]
			task := a.give(t, 0, false)
			put(t, keyIn(0), 5, a)
			c.publish()
			get := func(accept iq.Accept) (iq.Value[int64], error) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				return handle(a).Accepting(accept).Get(ctx, keyIn(0))
			}
			check := func(when string) {
				t.Helper()
				if _, err := get(iq.Accept{Lag: 1000}); err == nil || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: a bound: %v", when, err)
				}
				if v, err := get(iq.Accept{Lag: iq.AnyLag}); err != nil || v.Value != 5 || v.Meta.Lag != -1 {
					t.Errorf("%s: any: %+v, %v", when, v, err)
				}
			}
			c.set(func() { fail(c) })
			check("from the beginning")
			c.set(func() { c.listErr, c.listWait, c.ends[0] = nil, nil, 10 })
			task.with(func() { task.next = 10 })
			if v, err := get(iq.Accept{Lag: 1000}); err != nil || v.Meta.Lag != 0 {
				t.Errorf("a bound: %+v, %v", v, err)
			}
			c.set(func() { fail(c) })
			time.Sleep(300 * time.Millisecond) // for longer than an answer counts
			check("later")
			if v, err := get(iq.Accept{Age: time.Hour}); err != nil || v.Meta.Age < 300*time.Millisecond {
				t.Errorf("an hour: %+v, %v", v, err)
			}
		})
	}
}

// TestUnconfirmed: an active store whose instance has not heard from the group is no
// longer the truth, but better than nothing for those who accept anything.
func TestUnconfirmed(t *testing.T) {
	c := newCluster(t, 2, nil)
	a, b := c.instances[0], c.instances[1]
	task := a.give(t, 0, true)
	key := keyIn(0)
	put(t, key, 5, a)
	c.publish()
	task.with(func() { task.unconfirmed = true })
	for name, q := range map[string]iq.Querier{"here": a, "elsewhere": b} {
		if v, err := handle(q).Accepting(iq.Accept{Lag: iq.AnyLag}).Get(t.Context(), key); err != nil || v.Value != 5 || v.Meta.Active || v.Meta.Lag != -1 || v.Meta.Age != -1 {
			t.Errorf("%s, any: %+v, %v", name, v, err)
		}
		for _, accept := range []iq.Accept{{Lag: 1000}, {Age: time.Hour}, {Lag: iq.AnyLag, Age: time.Hour}} {
			if _, err := handle(q).Accepting(accept).Get(short(t), key); !errors.Is(err, iq.ErrTooStale) {
				t.Errorf("%s, %+v: %v", name, accept, err)
			}
		}
		if _, err := handle(q).Get(short(t), key); !errors.Is(err, iq.ErrMigrated) {
			t.Errorf("%s, the truth: %v", name, err)
		}
	}
	if lags, err := a.Lags(t.Context()); err != nil || len(lags) != 1 || lags[0].Active || lags[0].Lag != -1 {
		t.Errorf("lags %+v, %v", lags, err)
	}
	task.with(func() { task.unconfirmed = false })
	if v, err := handle(b).Get(t.Context(), key); err != nil || !v.Meta.Active {
		t.Errorf("confirmed again: %+v, %v", v, err)
	}
}

// TestLateLook: a look at the changelog's end that is under way for long doesn't count
// for those who have come since.
func TestLateLook(t *testing.T) {
	c := newCluster(t, 1, nil)
	a := c.instances[0]
	a.give(t, 0, false).next = 10
	put(t, keyIn(0), 5, a)
	c.publish()
	release := make(chan struct{})
	c.set(func() { c.ends[0], c.listWait = 10, release })
	answers := make(chan error, 2)
	ask := func() {
		_, err := handle(a).Accepting(iq.Accept{Lag: 5}).Get(short(t), keyIn(0))
		answers <- err
	}
	first, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	go func() {
		_, err := a.Query(first, &iq.Request{Store: "counts", Kind: iq.Get, Key: []byte(keyIn(0)), Partition: 0, Accept: iq.Accept{Lag: 5}})
		answers <- err
	}()
	for c.looks.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(300 * time.Millisecond)
	c.set(func() { c.ends[0], c.listWait = 1000, nil })
	go ask()
	time.Sleep(10 * time.Millisecond)
	close(release)
	if err := errors.Join(<-answers, <-answers); !errors.Is(err, iq.ErrTooStale) {
		t.Errorf("a copy that is 990 records behind: %v", err)
	}
}

// TestFallsBackToCopy: the active instance is gone, or hangs, and a copy answers.
func TestFallsBackToCopy(t *testing.T) {
	c := newCluster(t, 3, func(_ int, o *iq.Options) { o.TryTimeout = 5 * time.Second })
	a, b, asked := c.instances[0], c.instances[1], c.instances[2]
	key := keyIn(2)
	a.give(t, 2, true)
	b.give(t, 2, false).next = 7
	c.ends[2] = 7
	put(t, key, 3, a, b)
	c.publish()
	accept := iq.Accept{Lag: 5}
	v, err := handle(asked).Accepting(accept).Get(t.Context(), key)
	if err != nil || v.Value != 3 || !v.Meta.Active {
		t.Errorf("all is well: %+v, %v", v, err)
	}
	hang := make(chan struct{})
	a.delay.Store(&hang)
	v, err = handle(asked).Accepting(accept).Get(t.Context(), key)
	if err != nil || v.Value != 3 || v.Meta.Active || v.Meta.Host != b.self.String() {
		t.Errorf("the active one hangs: %+v, %v", v, err)
	}
	if _, err = handle(asked).Get(short(t), key); !errors.Is(err, iq.ErrUnreachable) {
		t.Errorf("it hangs, and no copy is accepted: %v", err)
	}
	close(hang)
	a.delay.Store(nil)
	a.take(t, 2)
	v, err = handle(asked).Accepting(accept).Get(t.Context(), key)
	if err != nil || v.Value != 3 || v.Meta.Host != b.self.String() {
		t.Errorf("the active one has it no more: %+v, %v", v, err)
	}
}

// TestHeld: a store that its task doesn't let go of, as while that waits for a broker,
// keeps nobody from a copy, and who wants the truth is told why there is none.
func TestHeld(t *testing.T) {
	c := newCluster(t, 2, nil)
	a, b := c.instances[0], c.instances[1]
	key := keyIn(1)
	task := a.give(t, 1, true)
	b.give(t, 1, false).next = 7
	c.ends[1] = 7
	put(t, key, 3, a, b)
	c.publish()
	task.gate.Lock()
	defer task.gate.Unlock()
	for name, q := range map[string]iq.Querier{"here": a, "elsewhere": b} {
		v, err := handle(q).Accepting(iq.Accept{Lag: 5}).Get(t.Context(), key)
		if err != nil || v.Value != 3 || v.Meta.Host != b.self.String() {
			t.Errorf("%s, a copy: %+v, %v", name, v, err)
		}
		if _, err := handle(q).Get(short(t), key); !errors.Is(err, iq.ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s, the truth: %v", name, err)
		}
	}
}

// TestHeldWithoutDeadline: a query whose caller has not said for how long it may take
// takes no longer than the service lets it.
func TestHeldWithoutDeadline(t *testing.T) {
	const timeout = 100 * time.Millisecond
	c := newCluster(t, 1, func(_ int, o *iq.Options) { o.Timeout = timeout })
	in := c.instances[0]
	task := in.give(t, 1, true)
	c.publish()
	task.gate.Lock()
	defer task.gate.Unlock()
	var known *iq.Error
	if _, err := handle(in).Get(context.Background(), keyIn(1)); !errors.As(err, &known) {
		t.Errorf("a get that takes longer than %v: %v", timeout, err)
	}
}

// TestPanickingSerde: a serde that panics leaves the store to its task.
func TestPanickingSerde(t *testing.T) {
	c := newCluster(t, 1, nil)
	in := c.instances[0]
	key := keyIn(1)
	task := in.give(t, 1, true)
	put(t, key, 3, in)
	c.publish()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("there was no panic")
			}
		}()
		of := iq.NewKeyValue(in.Service, "counts", serde.String, serde.Serde[int64](panicking{}))
		_, err := of.Get(t.Context(), key)
		t.Error(err)
	}()
	if !task.gate.TryEnter() {
		t.Fatal("the store is held for good")
	}
	task.gate.Leave()
}

type panicking struct{ serde.Serde[int64] }

func (panicking) Decode([]byte) (int64, error) { panic("a serde's") }

// TestReadYourWrites: a query with a position waits until that is processed.
func TestReadYourWrites(t *testing.T) {
	c := newCluster(t, 2, nil)
	a, b := c.instances[0], c.instances[1]
	key := keyIn(1)
	task := a.give(t, 1, true)
	put(t, key, 1, a)
	c.publish()
	position := iq.Position{}.With(source, 1, 42).With(source, 0, 1000) // another partition's doesn't matter
	for name, q := range map[string]iq.Querier{"here": a, "elsewhere": b} {
		task.with(func() { task.inputs[source] = 41 })
		of := handle(q).Accepting(iq.Accept{Position: position})
		if _, err := of.Get(short(t), key); !errors.Is(err, iq.ErrBehind) || !strings.Contains(err.Error(), "in-1@41") {
			t.Errorf("%s: not there yet: %v", name, err)
		}
		time.AfterFunc(20*time.Millisecond, func() { task.with(func() { task.inputs[source] = 42 }) })
		if v, err := of.Get(t.Context(), key); err != nil || v.Value != 1 {
			t.Errorf("%s: %+v, %v", name, v, err)
		} else if v.Meta.Position[source][1] < 42 {
			t.Errorf("%s: the position is %v", name, v.Meta.Position)
		}
	}
}

// TestRange: ranges over partitions of several instances come in the order of their
// keys, whole, whatever the bounds, with partitions that move meanwhile.
func TestRange(t *testing.T) {
	c := newCluster(t, 3, nil)
	for p := range int32(storePartitions) {
		c.instances[p%3].give(t, p, true)
	}
	c.publish()
	var keys []string
	for n := range 2000 {
		key := fmt.Sprintf("%05d", n*7%2000)
		keys = append(keys, key)
		put(t, key, int64(len(key)), c.instances...)
	}
	slices.Sort(keys)
	at := func(q iq.Querier, b state.Bounds[string], order state.Order) (got []string) {
		for item, err := range handle(q).Range(t.Context(), b, order) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, item.Key)
		}
		return got
	}
	same := func(what string, got, want []string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d keys, want %d", what, len(got), len(want))
		}
	}
	backward := slices.Clone(keys)
	slices.Reverse(backward)
	client, err := iq.NewClient([]string{c.instances[1].self.String()}, iq.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for name, q := range map[string]iq.Querier{"instance": c.instances[0], "client": client} {
		same(name+": all", at(q, state.Bounds[string]{}, state.Forward), keys)
		same(name+": backward", at(q, state.Bounds[string]{}, state.Backward), backward)
		from, to := "00100", "01900"
		same(name+": bounds", at(q, state.Bounds[string]{From: &from, To: &to}, state.Forward), keys[100:1901])
		var prefixed []string
		for item, err := range handle(q).Prefix(t.Context(), []byte("0012"), state.Backward) {
			if err != nil {
				t.Fatal(err)
			}
			prefixed = append(prefixed, item.Key)
		}
		want := slices.Clone(keys[120:130])
		slices.Reverse(want)
		same(name+": prefix", prefixed, want)
	}
	// Partition 1 moves in the middle.
	n := 0
	for _, err := range handle(c.instances[0]).All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 100 {
			c.instances[2].give(t, 1, true)
			put2 := c.instances[2].tasks[1]
			for _, key := range keys {
				if iq.DefaultPartition([]byte(key), storePartitions) == 1 {
					put2.put(t, key, 5)
				}
			}
			c.instances[1].take(t, 1)
			c.publish()
		}
	}
	if n != len(keys) {
		t.Errorf("%d keys of %d after a move", n, len(keys))
	}
	rows, err := c.instances[0].Query(t.Context(), &iq.Request{Store: "counts", Kind: iq.Range, Partition: iq.AllPartitions, Limit: 300})
	if err != nil {
		t.Fatal(err)
	}
	n = 0
	for _, err := range rows.All() {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 300 {
		t.Errorf("a limit of 300 gives %d", n)
	}
}

// TestQueriesWhileProcessing: queries, here and from elsewhere, never see less than
// what was there before, while the owner works without a pause.
func TestQueriesWhileProcessing(t *testing.T) {
	c := newCluster(t, 2, nil)
	a := c.instances[0]
	for p := range int32(storePartitions) {
		a.give(t, p, true)
	}
	c.publish()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var group sync.WaitGroup
	for p, task := range a.tasks {
		group.Go(func() {
			key := keyIn(p)
			for value := int64(1); ctx.Err() == nil; {
				task.gate.Lock()
				for range 1000 {
					if err := task.store.Put(key, value, value); err != nil {
						t.Error(err)
					}
					value++
					task.gate.Yield()
				}
				task.gate.Unlock()
			}
		})
	}
	for _, q := range c.instances {
		group.Go(func() {
			last := map[string]int64{}
			for n := 0; ctx.Err() == nil; n++ {
				key := keyIn(rand.Int32N(storePartitions))
				v, err := handle(q).Get(t.Context(), key)
				if err != nil {
					t.Error(err)
					return
				}
				if v.Value < last[key] || v.OK && v.Value != v.Timestamp {
					t.Errorf("%s: %+v after %d", key, v, last[key])
				}
				last[key] = v.Value
			}
		})
	}
	group.Wait()
}

// javaTransport stands for a user's own way to call instances that don't speak our
// protocol.
type javaTransport struct {
	java membership.Endpoint
	iq.Transport
}

func (j javaTransport) Call(ctx context.Context, to membership.Endpoint, req *iq.Request) (*iq.Rows, error) {
	if to != j.java {
		return j.Transport.Call(ctx, to, req)
	}
	entry := iq.Entry{Key: req.Key, Value: []byte{0, 0, 0, 0, 0, 0, 0, 77}, Timestamp: 1}
	sent := false
	return iq.NewRows(iq.Meta{Host: to.String(), Partition: req.Partition, Active: true}, func() (iq.Entry, error) {
		if sent {
			return iq.Entry{}, io.EOF
		}
		sent = true
		return entry, nil
	}, nil), nil
}

func TestJavaInstance(t *testing.T) {
	java := membership.Endpoint{Host: "java", Port: 7070}
	c := newCluster(t, 2, func(_ int, o *iq.Options) { o.Transport = javaTransport{java, o.Transport} })
	a, b := c.instances[0], c.instances[1]
	a.give(t, 0, true)
	put(t, keyIn(0), 1, a)
	c.tell(has(a.self, source, []int32{0}, nil), has(java, source, []int32{1}, nil))
	for p, want := range map[int32]int64{0: 1, 1: 77} {
		if v, err := handle(b).Get(t.Context(), keyIn(p)); err != nil || v.Value != want {
			t.Errorf("partition %d: %+v, %v", p, v, err)
		}
	}
}

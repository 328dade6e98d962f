package membership

import (
	"encoding/base64"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"
)

func TestParseTaskID(t *testing.T) {
	for in, want := range map[string]TaskID{
		"0_1": {"0", 1}, "12_345": {"12", 345}, "a_b_2": {"a_b", 2}, "0_2147483647": {"0", 1<<31 - 1},
	} {
		got, err := ParseTaskID(in)
		if err != nil || got != want || got.String() != in {
			t.Errorf("%q: %v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "_", "0", "0_", "_1", "0_-1", "0_x", "0_2147483648", "0_+1", "0_ 1"} {
		if got, err := ParseTaskID(in); err == nil {
			t.Errorf("%q parsed as %v", in, got)
		}
	}
}

func FuzzParseTaskID(f *testing.F) {
	f.Add("0_1")
	f.Add("a_b_0012")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseTaskID(s)
		if err != nil {
			return
		}
		again, err := ParseTaskID(id.String())
		if err != nil || again != id {
			t.Errorf("%q → %v → %v, %v", s, id, again, err)
		}
	})
}

func taskID() *rapid.Generator[TaskID] {
	return rapid.Custom(func(t *rapid.T) TaskID {
		return TaskID{rapid.SampledFrom([]string{"0", "1", "2", "10", "007", "7", "x", "y", ""}).Draw(t, "s"), rapid.Int32Range(0, 5).Draw(t, "p")}
	})
}

func TestCompareIsAnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := taskID().Draw(t, "a"), taskID().Draw(t, "b"), taskID().Draw(t, "c")
		if a.Compare(b) != -b.Compare(a) {
			t.Errorf("%v, %v", a, b)
		}
		if (a.Compare(b) == 0) != (a == b) {
			t.Errorf("%v equals %v", a, b)
		}
		if a.Compare(b) <= 0 && b.Compare(c) <= 0 && a.Compare(c) > 0 {
			t.Errorf("%v ≤ %v ≤ %v", a, b, c)
		}
	})
	got := ids("10_0", "2_1", "2_0", "x_0", "0_11", "0_2")
	slices.SortFunc(got, TaskID.Compare)
	if want := ids("0_2", "0_11", "2_0", "2_1", "10_0", "x_0"); !slices.Equal(got, want) {
		t.Errorf("sorted %v, want %v", got, want)
	}
}

func TestTasksToWireAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOf(taskID()).Draw(t, "tasks")
		slices.SortFunc(in, TaskID.Compare)
		in = slices.Compact(in)
		wire := tasksToWire(in)
		if wire == nil {
			t.Fatal("nil means unchanged")
		}
		for i := 1; i < len(wire); i++ {
			if wire[i].SubtopologyID == wire[i-1].SubtopologyID {
				t.Errorf("subtopology %q twice", wire[i].SubtopologyID)
			}
		}
		if got := tasksFromWire(wire); !slices.Equal(got, in) {
			t.Errorf("%v → %v", in, got)
		}
	})
}

func TestConfig(t *testing.T) {
	if _, err := testConfig().complete(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Group = "" }, "Group"},
		{func(c *Config) { c.ProcessID = "" }, "ProcessID"},
		{func(c *Config) { c.Topology = nil }, "Topology"},
		{func(c *Config) { c.Topology = &kmsg.StreamsGroupHeartbeatRequestTopology{} }, "Topology"},
		{func(c *Config) { c.Endpoint = &Endpoint{Host: "h"} }, "Endpoint"},
		{func(c *Config) { c.Endpoint = &Endpoint{Port: 1} }, "Endpoint"},
		{func(c *Config) { c.RebalanceTimeout = -1 }, "RebalanceTimeout"},
		{func(c *Config) { c.RebalanceTimeout = time.Microsecond }, "RebalanceTimeout"},
		{func(c *Config) { c.RebalanceTimeout = 1 << 62 }, "RebalanceTimeout"},
		{func(c *Config) { c.RequestTimeout = -1 }, "RequestTimeout"},
		{func(c *Config) { c.InstanceIDWait = -1 }, "InstanceIDWait"},
		{func(c *Config) { c.InstanceIDWait = 1 }, "InstanceID is empty"},
	} {
		cfg := testConfig()
		tt.change(&cfg)
		if _, err := cfg.complete(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.want, err)
		}
	}
	if _, err := NewLoop(nil, testConfig(), Callbacks{}); err == nil {
		t.Error("a loop without a client")
	}
	broken := testConfig()
	broken.MemberID, broken.Random = "", iotest{}
	if _, err := broken.complete(); err == nil {
		t.Error("a member id without randomness")
	}
}

type iotest struct{}

func (iotest) Read([]byte) (int, error) { return 0, errors.New("no randomness") }

func TestMemberID(t *testing.T) {
	// A first UUID that begins with a dash, which isn't taken.
	dash := strings.Repeat("\xf8", 16) + strings.Repeat("\x00", 16)
	id, err := newMemberID(strings.NewReader(dash))
	if err != nil || id != "AAAAAAAAQACAAAAAAAAAAA" {
		t.Errorf("%q, %v", id, err)
	}
	if _, err := newMemberID(strings.NewReader("short")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v", err)
	}
	cfg := testConfig()
	cfg.MemberID, cfg.Random = "", nil
	seen := map[string]bool{}
	for range 100 {
		c, err := cfg.complete()
		if err != nil {
			t.Fatal(err)
		}
		raw, err := base64.RawURLEncoding.DecodeString(c.MemberID)
		if err != nil || len(raw) != 16 || raw[6]>>4 != 4 || raw[8]>>6 != 2 || seen[c.MemberID] {
			t.Errorf("%q, %v", c.MemberID, err)
		}
		seen[c.MemberID] = true
	}
}

func TestBackoff(t *testing.T) {
	var b backoff
	for i, want := range []time.Duration{100, 200, 400, 800, 1000, 1000} {
		if got := b.next(0.5); got != want*time.Millisecond {
			t.Errorf("%d: %v", i, got)
		}
	}
	b.reset()
	for i, want := range []time.Duration{0, 100, 200, 400, 800, 1000} {
		if got := b.nextFree(0.5); got != want*time.Millisecond {
			t.Errorf("free %d: %v", i, got)
		}
	}
	for range 1000 {
		b.next(0.99)
	}
	if lo, hi := (&backoff{}).next(0), (&backoff{}).next(0.999); lo != 80*time.Millisecond || hi < 119*time.Millisecond || hi > 120*time.Millisecond {
		t.Errorf("jitter from %v to %v", lo, hi)
	}
}

func TestNames(t *testing.T) {
	if s := (Status{StatusMissingSourceTopics, "x"}).String(); s != "MISSING_SOURCE_TOPICS (x)" {
		t.Error(s)
	}
	if s := StatusCode(9).String(); s != "STATUS_9" {
		t.Error(s)
	}
	if s := PrepareLeaving.String() + State(77).String(); s != "PREPARE_LEAVINGState(77)" {
		t.Error(s)
	}
	if s := (Endpoint{"::1", 80}).String(); s != "[::1]:80" {
		t.Error(s)
	}
}

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/odradek-go/odradek/examples/internal/demo"
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/streamstest"
)

// site pipes views and reads counts.
type site struct {
	views  *streamstest.InputTopic[string, view]
	counts *streamstest.OutputTopic[serde.Windowed[string], int64]
}

func newSite(t *testing.T) *site {
	d := streamstest.NewDriver(t, topology())
	return &site{
		views:  streamstest.NewInputTopic(d, viewsTopic, streamstest.Input[string, view]{Value: serde.JSON[view]()}),
		counts: streamstest.NewOutputTopic(d, countsTopic, streamstest.Output[serde.Windowed[string], int64]{Key: windowed}),
	}
}

// noon is when the tests begin.
var noon = time.Date(2026, time.May, 1, 12, 0, 0, 0, time.UTC)

// view is somebody looking at a page so long after noon.
func (s *site) view(page string, after time.Duration) {
	s.views.Pipe("somebody", view{Page: page, User: "somebody", At: noon.Add(after)})
}

// final returns the counts that have become final, as page@minute=count.
func (s *site) final() string {
	var got []string
	for _, r := range s.counts.ReadAll() {
		minute := time.UnixMilli(r.Key.Start).Sub(noon) / time.Minute
		got = append(got, fmt.Sprintf("%s@%d=%d", r.Key.Key, minute, r.Value))
	}
	slices.Sort(got)
	return strings.Join(got, " ")
}

func TestCountsPerMinute(t *testing.T) {
	s := newSite(t)
	s.view("/home", 0)
	s.view("/tea", 10*time.Second)
	s.view("/home", 59*time.Second)
	s.view("/home", 60*time.Second)
	if got := s.final(); got != "" {
		t.Errorf("final too early: %s", got)
	}
	s.view("/tea", 90*time.Second) // the first minute and its grace are over
	if got := s.final(); got != "/home@0=2 /tea@0=1" {
		t.Errorf("final are %s", got)
	}
	s.view("/tea", 10*time.Minute)
	if got := s.final(); got != "/home@1=1 /tea@1=1" {
		t.Errorf("final are %s", got)
	}
}

// TestLateViews: a late view counts within the grace period, and not after it.
func TestLateViews(t *testing.T) {
	s := newSite(t)
	s.view("/home", 10*time.Second)
	s.view("/home", 80*time.Second)
	s.view("/home", 20*time.Second) // late, and in time
	s.view("/home", 95*time.Second)
	s.view("/home", 30*time.Second) // too late
	s.view("/home", 5*time.Minute)
	if got := s.final(); got != "/home@0=2 /home@1=2" {
		t.Errorf("final are %s", got)
	}
}

func TestViewWithoutTime(t *testing.T) {
	s := newSite(t)
	err := s.views.TryPipe(streams.Record[string, view]{Value: view{Page: "/home"}})
	if err == nil || !strings.Contains(err.Error(), `"/home" has no time`) {
		t.Errorf("got %v", err)
	}
}

// TestProgram runs the whole program, on the embedded broker.
func TestProgram(t *testing.T) {
	var out, messages strings.Builder
	if err := demo.Run(t.Context(), program, nil, &out, &messages); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/tea     2", "/milk    1"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("prints\n%s\nwithout %s", out.String(), want)
		}
	}
	if messages.Len() > 0 {
		t.Errorf("says %s", messages.String())
	}
}

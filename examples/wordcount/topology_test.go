package main

import (
	"maps"
	"testing"

	"github.com/odradek-go/odradek/streamstest"
)

func TestCounts(t *testing.T) {
	d := streamstest.NewDriver(t, topology(options{inputTopic: "lines", outputTopic: "counts"}))
	lines := streamstest.NewInputTopic[string, string](d, "lines")
	counts := streamstest.NewOutputTopic[string, int64](d, "counts")
	lines.PipeValues("To be, or not", "to be!")
	if got, want := streamstest.ReadMap(counts), (map[string]int64{"to": 2, "be": 2, "or": 1, "not": 1}); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	lines.PipeValues("", "…", "Größe 42 größe")
	if got, want := streamstest.ReadMap(counts), (map[string]int64{"größe": 2, "42": 1}); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

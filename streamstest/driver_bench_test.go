package streamstest_test

import (
	"testing"

	"github.com/odradek-go/odradek/streamstest"
)

func BenchmarkDriver(b *testing.B) {
	for b.Loop() {
		d := streamstest.NewDriver(b, wordCount())
		in := streamstest.NewInputTopic[string, string](d, "lines")
		in.PipeValue("to be or not to be")
		d.Close()
	}
}

func BenchmarkPipe(b *testing.B) {
	d := streamstest.NewDriver(b, wordCount())
	in := streamstest.NewInputTopic[string, string](d, "lines")
	for b.Loop() {
		in.PipeValue("to be or not to be")
	}
}

package kafkatest

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestMissing(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs are shell scripts")
	}
	for name, test := range map[string]struct {
		programs map[string]string // name to shell script
		want     string
	}{
		"no java":      {map[string]string{"mvn": ""}, "java is not on PATH"},
		"no maven":     {map[string]string{"java": ""}, "mvn is not on PATH"},
		"broken java":  {map[string]string{"java": "echo no runtime; exit 1", "mvn": ""}, "no runtime"},
		"unclear java": {map[string]string{"java": "echo hello", "mvn": ""}, "hello"},
		"old java":     {map[string]string{"java": `echo 'openjdk version "11.0.2" 2019-01-15'`, "mvn": ""}, "Java 11 is too old"},
		"java 17":      {map[string]string{"java": `echo 'openjdk version "17.0.15" 2025-04-15'`, "mvn": ""}, ""},
		"java 21":      {map[string]string{"java": `echo 'openjdk version "21" 2023-09-19'`, "mvn": ""}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for program, script := range test.programs {
				if err := os.WriteFile(filepath.Join(dir, program), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("PATH", dir)
			got := missing()
			if !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
				t.Errorf("missing is %q, want %q in it", got, test.want)
			}
			if got != "" && !strings.Contains(got, "install") {
				t.Errorf("%q does not say how to get it", got)
			}
		})
	}
}

// recorder is a test that notes how it ends.
type recorder struct {
	testing.TB
	skipped, failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Skipf(string, ...any)  { r.skipped = true; runtime.Goexit() }
func (r *recorder) Fatalf(string, ...any) { r.failed = true; runtime.Goexit() }

func TestRequire(t *testing.T) {
	_, available := Available()
	for value, want := range map[string]recorder{
		"":    {skipped: !available},
		"0":   {skipped: true},
		"1":   {failed: !available},
		"yes": {failed: true},
	} {
		t.Setenv(EnvRequire, value)
		var got recorder
		done := make(chan struct{})
		go func() { defer close(done); Require(&got) }()
		<-done
		if got != want {
			t.Errorf("%s=%s: skipped %t, failed %t; want %t, %t", EnvRequire, value, got.skipped, got.failed, want.skipped, want.failed)
		}
	}
}

package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestExample: every instance knows the counts of all words, and who has them.
func TestExample(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"-listen", "127.0.0.1:0,127.0.0.1:0"}, in, io.Discard)
		in.Close()
	}()
	var hosts []string
	buffer := make([]byte, 1000)
	for len(hosts) < 2 {
		n, err := out.Read(buffer)
		if err != nil {
			t.Fatal(err, <-ended)
		}
		for line := range strings.Lines(string(buffer[:n])) {
			hosts = append(hosts, strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "curl "), "/words/the"))
		}
	}
	deadline := time.Now().Add(time.Minute)
	for word, want := range map[string]int64{"the": 10, "ship": 3, "alone": 1, "whale": 0} {
		for _, host := range hosts {
			for {
				count, from, err := ask(host, word)
				if err == nil && count == want && from != "" {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("%s for %q: %d from %q, %v; want %d", host, word, count, from, err, want)
				}
				time.Sleep(50 * time.Millisecond)
			}
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
}

func ask(host, word string) (count int64, from string, err error) {
	resp, err := http.Get(host + "/words/" + word)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	var answer struct {
		Count int64
		Host  string
	}
	err = json.NewDecoder(resp.Body).Decode(&answer)
	return answer.Count, answer.Host, err
}

package membership

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestDescription(t *testing.T) {
	asked := func() *kmsg.StreamsGroupHeartbeatResponse {
		r := ok(1)
		r.TopologyDescriptionRequired = true
		return r
	}
	answer := func(d *driver, code int16) {
		d.m.DescriptionAnswered(d.now, d.pushed[len(d.pushed)-1], &kmsg.StreamsGroupTopologyDescriptionUpdateResponse{ErrorCode: code})
		d.pump()
	}
	t.Run("asked twice", func(t *testing.T) {
		d := joined(t, testConfig())
		d.beat(asked())
		d.beat(asked())
		if len(d.pushed) != 1 {
			t.Fatalf("%d pushes in flight", len(d.pushed))
		}
		answer(d, 0)
		d.beat(asked())
		if len(d.pushed) != 2 {
			t.Errorf("%d pushes", len(d.pushed))
		}
	})
	t.Run("retried", func(t *testing.T) {
		for _, code := range []int16{14, 7, 16, 15, 13} {
			d := joined(t, testConfig())
			d.beat(asked())
			for i, want := range []time.Duration{100, 200, 400} {
				at, n := d.now, len(d.pushed)
				answer(d, code)
				for len(d.pushed) == n {
					d.advance(10 * time.Millisecond)
				}
				if wait := d.now.Sub(at); wait < want*time.Millisecond || wait > (want+150)*time.Millisecond {
					t.Errorf("%d: push %d after %v", code, i, wait)
				}
			}
			if len(d.warnings) != 0 {
				t.Errorf("%d: warnings %v", code, d.warnings)
			}
		}
	})
	t.Run("dropped", func(t *testing.T) {
		for _, code := range allCodes() {
			if slices.Contains([]int16{14, 7, 16, 15, 13}, code) {
				continue
			}
			d := joined(t, testConfig())
			d.beat(asked())
			answer(d, code)
			d.advance(time.Minute)
			if len(d.pushed) != 1 || d.err != nil || d.m.State() != Stable {
				t.Errorf("%d: %d pushes, err %v, state %v", code, len(d.pushed), d.err, d.m.State())
			}
			if warned := len(d.warnings) == 1; warned == (code == 25) {
				t.Errorf("%d: warnings %v", code, d.warnings)
			}
		}
	})
	t.Run("connection lost", func(t *testing.T) {
		d := joined(t, testConfig())
		d.beat(asked())
		lookups := len(d.lookups)
		d.m.DescriptionFailed(d.now, d.pushed[0], errors.New("lost"))
		d.pump()
		d.advance(200 * time.Millisecond)
		if len(d.pushed) != 2 || len(d.lookups) != lookups+1 {
			t.Errorf("%d pushes, %d lookups", len(d.pushed), len(d.lookups)-lookups)
		}
		d.m.DescriptionFailed(d.now, d.pushed[1], ErrUnsupported)
		d.advance(time.Second)
		if len(d.pushed) != 2 || len(d.warnings) != 1 || d.err != nil {
			t.Errorf("%d pushes, warnings %v, err %v", len(d.pushed), d.warnings, d.err)
		}
	})
	t.Run("fenced meanwhile", func(t *testing.T) {
		d := joined(t, testConfig())
		d.beat(asked())
		d.beat(refusal(25, ""))
		answer(d, 14)
		d.m.LostDone(d.now)
		d.pump()
		d.answer(granted(2, none, none, none))
		d.advance(100 * time.Millisecond)
		if len(d.pushed) != 1 {
			t.Errorf("%d pushes", len(d.pushed))
		}
	})
	t.Run("off", func(t *testing.T) {
		cfg := testConfig()
		cfg.Description = nil
		d := joined(t, cfg)
		d.beat(asked())
		if len(d.pushed) != 0 {
			t.Errorf("%d pushes", len(d.pushed))
		}
	})
}

package membership

import "testing"

// TestSteadyHeartbeatSize: a heartbeat that says nothing new is no larger than a
// Java member's with names of the same length, of which 57 bytes were recorded
// behind the request's header.
func TestSteadyHeartbeatSize(t *testing.T) {
	cfg := testConfig()
	cfg.Group, cfg.MemberID = "j2-10185", "8EWV6bEsQ6m4YymDKPfsQw"
	d := joined(t, cfg)
	beat := d.next()
	beat.SetVersion(1)
	if n := len(beat.AppendTo(nil)); n > 57 {
		t.Errorf("%d bytes", n)
	}
}

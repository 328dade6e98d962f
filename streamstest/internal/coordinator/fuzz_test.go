package coordinator

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Whatever a heartbeat holds, it is answered, and the answer keeps to the protocol.
func FuzzHeartbeat(f *testing.F) {
	for _, name := range []string{"01-join-alone", "09-wrong-copartitioning", "15-iq-user-endpoint"} {
		for _, e := range readExchanges(f, name) {
			if e.Req != nil && (e.Req.Topology != nil || e.Req.ActiveTasks != nil) {
				f.Add(e.Req.wire().AppendTo(nil), int32(4))
			}
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, partitions int32) {
		req := kmsg.NewPtrStreamsGroupHeartbeatRequest()
		req.Version = 1
		if req.ReadFrom(raw) != nil {
			return
		}
		fx := newFixture(t, func(c *Config) { c.NumStandbyReplicas, c.NumWarmupReplicas = 1, 1 })
		const enough = 64 // partitions of a topic, so that a topology of few bytes does not make millions of tasks
		if partitions > enough {
			return
		}
		cluster := Cluster{
			Topics: func(name string) (Topic, bool) {
				return Topic{Partitions: partitions}, partitions > 0 && name != "in"
			},
			OtherGroup: func(string) OtherGroup { return NoOtherGroup },
		}
		fx.alone()
		for range 3 {
			fx.c.RequiredTopics(req)
			resp, _ := fx.c.Heartbeat(fx.now, req, Client{}, cluster)
			if lists := (resp.ActiveTasks != nil) == (resp.StandbyTasks != nil) && (resp.ActiveTasks != nil) == (resp.WarmupTasks != nil); !lists {
				t.Fatalf("some lists only: %+v", resp)
			}
			if resp.Status == nil {
				t.Fatal("no status list")
			}
			if resp.ErrorCode == 0 && (resp.MemberID != req.MemberID || req.MemberEpoch == joinEpoch && resp.ActiveTasks == nil) {
				t.Fatalf("%+v", resp)
			}
			if resp.ErrorCode == 0 {
				req.MemberEpoch, req.Topology = resp.MemberEpoch, nil
			}
			fx.c.Describe(fx.now, req.Group, true)
			fx.c.Snapshot(fx.now, req.Group)
		}
	})
}

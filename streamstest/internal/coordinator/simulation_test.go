package coordinator

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"
)

// simClient is a member as the protocol wants it: it gives up what it must as soon as it is told, starts new tasks
// after that, and acknowledges. Answers to it get lost at times. As a 4.4 coordinator does not repeat an assignment
// (see TestLostAnswer), it then gives up everything and joins again.
type simClient struct {
	id, process string
	epoch       int32
	running     Tasks
	tell        bool // the next heartbeat carries what it runs
	position    map[TaskID]int64
}

const simEnd = 1000 // of every changelog

type simulation struct {
	c       *Coordinator
	now     time.Time
	topics  map[string]Topic
	clients []*simClient
}

func newSimulation(standbys, warmups int) *simulation {
	return &simulation{
		c: New(Config{
			SessionTimeout: 10 * time.Second, HeartbeatInterval: time.Second, TaskOffsetInterval: time.Second,
			NumStandbyReplicas: standbys, NumWarmupReplicas: warmups, AcceptableRecoveryLag: 10, MaxSize: 100,
		}, slog.New(slog.DiscardHandler)),
		now:    time.UnixMilli(1_700_000_000_000),
		topics: map[string]Topic{"in": {ID: [16]byte{1}, Partitions: 4}, "other": {ID: [16]byte{2}, Partitions: 2}},
	}
}

// simTopology has a subtopology with a store, and one without.
func simTopology() *kmsg.StreamsGroupHeartbeatRequestTopology {
	return &kmsg.StreamsGroupHeartbeatRequestTopology{Subtopologies: []subtopology{
		{SubtopologyID: "0", SourceTopics: []string{"in"}, StateChangelogTopics: []kmsg.TopicInfo{{Topic: "changelog"}}},
		{SubtopologyID: "1", SourceTopics: []string{"other"}},
	}}
}

func (s *simulation) exchange(req *kmsg.StreamsGroupHeartbeatRequest) *kmsg.StreamsGroupHeartbeatResponse {
	req.Version = 1
	req.Group = "app"
	resp, missing := s.c.Heartbeat(s.now, req, Client{}, Cluster{
		Topics:     func(name string) (Topic, bool) { t, ok := s.topics[name]; return t, ok },
		OtherGroup: func(string) OtherGroup { return NoOtherGroup },
	})
	for _, m := range missing {
		s.topics[m.Name] = Topic{ID: [16]byte{3}, Partitions: m.Partitions}
	}
	return resp
}

// beat sends a heartbeat of the client.
func (s *simulation) beat(c *simClient, answerLost bool) error {
	req := kmsg.NewPtrStreamsGroupHeartbeatRequest()
	req.MemberID, req.MemberEpoch = c.id, c.epoch
	switch {
	case c.epoch == joinEpoch:
		req.Topology, req.ProcessID, req.RebalanceTimeoutMillis = simTopology(), &c.process, 60_000
		req.ActiveTasks, req.StandbyTasks, req.WarmupTasks = []kmsg.TaskIDs{}, []kmsg.TaskIDs{}, []kmsg.TaskIDs{}
	case c.tell:
		req.ActiveTasks, req.StandbyTasks, req.WarmupTasks = toWire(c.running.Active), toWire(c.running.Standby), toWire(c.running.Warmup)
	}
	req.TaskOffsets, req.TaskEndOffsets = []kmsg.TaskOffset{}, []kmsg.TaskOffset{}
	for t := range union(c.running.Standby, c.running.Warmup) {
		c.position[t] = min(c.position[t]+300, simEnd)
		req.TaskOffsets = append(req.TaskOffsets, kmsg.TaskOffset{SubtopologyID: t.Subtopology, Partition: t.Partition, Offset: c.position[t]})
		end := int64(simEnd)
		if c.position[t] <= 300 {
			end = math.MaxInt64 // not known yet
		}
		req.TaskEndOffsets = append(req.TaskEndOffsets, kmsg.TaskOffset{SubtopologyID: t.Subtopology, Partition: t.Partition, Offset: end})
	}
	resp := s.exchange(req)
	if answerLost {
		c.epoch, c.running, c.tell = joinEpoch, Tasks{}, false
		return nil
	}
	switch kerr.ErrorForCode(resp.ErrorCode) {
	case nil:
	case kerr.FencedMemberEpoch, kerr.UnknownMemberID:
		c.epoch, c.running, c.tell = joinEpoch, Tasks{}, false
		return nil
	default:
		return fmt.Errorf("%s at epoch %d: error %d %s", c.id, c.epoch, resp.ErrorCode, *resp.ErrorMessage)
	}
	c.epoch, c.tell = resp.MemberEpoch, false
	if resp.ActiveTasks != nil {
		c.running = Tasks{Active: setFromWire(resp.ActiveTasks), Standby: setFromWire(resp.StandbyTasks), Warmup: setFromWire(resp.WarmupTasks)}
		c.tell = true
	}
	return nil
}

func (s *simulation) leave(c *simClient) error {
	req := kmsg.NewPtrStreamsGroupHeartbeatRequest()
	req.MemberID, req.MemberEpoch = c.id, leaveEpoch
	if resp := s.exchange(req); resp.ErrorCode != 0 && resp.ErrorCode != kerr.UnknownMemberID.Code && resp.ErrorCode != kerr.GroupIDNotFound.Code {
		return fmt.Errorf("%s leaves: error %d", c.id, resp.ErrorCode)
	}
	s.clients = slices.DeleteFunc(s.clients, func(o *simClient) bool { return o == c })
	return nil
}

// check looks for what must never be: a task that two members run, or that one process has twice. A member that has
// been removed for its silence runs what it has until it hears of it; that cannot be helped.
func (s *simulation) check() error {
	known := make(map[string]bool)
	snapshot, _ := s.c.Snapshot(s.now, "app")
	for _, m := range snapshot.Members {
		known[m.ID] = true
	}
	active := make(map[TaskID]string)
	type place struct {
		task    TaskID
		process string
	}
	held := make(map[place]string)
	for _, c := range s.clients {
		if !known[c.id] {
			continue
		}
		for role, set := range map[string]TaskSet{"active": c.running.Active, "standby": c.running.Standby, "warm-up": c.running.Warmup} {
			for t := range set {
				if role == "active" {
					if other, twice := active[t]; twice {
						return fmt.Errorf("task %v is active on %s and %s", t, other, c.id)
					}
					active[t] = c.id
				}
				p := place{t, c.process}
				if other, twice := held[p]; twice {
					return fmt.Errorf("process %s has task %v on %s and %s", c.process, t, other, c.id)
				}
				held[p] = c.id
			}
		}
	}
	return nil
}

// settle lets everyone talk until the group is stable and has no warm-up tasks, and checks that all tasks run.
func (s *simulation) settle() error {
	const enough = 200
	for range enough {
		warming := false
		for _, c := range s.clients {
			if err := s.beat(c, false); err != nil {
				return err
			}
			if err := s.check(); err != nil {
				return err
			}
			warming = warming || len(c.running.Warmup) > 0 || c.tell
		}
		if s.c.State(s.now, "app") == StateStable && !warming {
			n := 0
			for _, c := range s.clients {
				n += len(c.running.Active)
			}
			if want := int(s.topics["in"].Partitions + s.topics["other"].Partitions); n != want {
				return fmt.Errorf("%d of %d tasks run", n, want)
			}
			return nil
		}
	}
	snapshot, _ := s.c.Snapshot(s.now, "app")
	return fmt.Errorf("the group does not settle: %+v", snapshot)
}

// addPartition adds a partition to the topic of the subtopology without a store; a changelog would not fit any more.
func (s *simulation) addPartition() {
	other := s.topics["other"]
	other.Partitions = min(other.Partitions+1, 5)
	s.topics["other"] = other
}

func (s *simulation) setWarmups(n int) {
	if err := s.c.AlterGroupConfigs("app", map[string]string{configNumWarmupReplicas: fmt.Sprint(n)}, nil, false); err != nil {
		panic(err)
	}
}

func TestSimulation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulation(rapid.IntRange(0, 2).Draw(t, "standbys"), rapid.IntRange(0, 2).Draw(t, "warmups"))
		born := 0
		must := func(err error) {
			if err == nil {
				err = s.check()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		pick := func(t *rapid.T) *simClient {
			if len(s.clients) == 0 {
				t.Skip("nobody")
			}
			return rapid.SampledFrom(s.clients).Draw(t, "client")
		}
		t.Repeat(map[string]func(*rapid.T){
			"join": func(t *rapid.T) {
				if len(s.clients) >= 6 {
					t.Skip("enough")
				}
				born++
				s.clients = append(s.clients, &simClient{
					id: fmt.Sprintf("m%d", born), process: fmt.Sprintf("p%d", rapid.IntRange(0, 2).Draw(t, "process")),
					position: make(map[TaskID]int64),
				})
			},
			"heartbeat":             func(t *rapid.T) { must(s.beat(pick(t), false)) },
			"heartbeat again":       func(t *rapid.T) { must(s.beat(pick(t), false)) },
			"its answer is lost":    func(t *rapid.T) { must(s.beat(pick(t), true)) },
			"leave":                 func(t *rapid.T) { must(s.leave(pick(t))) },
			"the coordinator moves": func(*rapid.T) { s.c.Moved(s.now, "app") },
			"time passes":           func(*rapid.T) { s.now = s.now.Add(4 * time.Second) },
			"partitions are added":  func(*rapid.T) { s.addPartition() },
			"warm-ups are changed":  func(t *rapid.T) { s.setWarmups(rapid.IntRange(0, 2).Draw(t, "warmups")) },
			"settle": func(t *rapid.T) {
				if len(s.clients) > 0 {
					must(s.settle())
				}
			},
		})
		if len(s.clients) > 0 {
			must(s.settle())
		}
	})
}

package streamstest

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"
)

// However the bytes of requests come in, the heartbeats among them tell who sent them.
func TestFrames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ids clientIDs
		f := frames{ids: &ids}
		var stream []byte
		want := make(map[string]string)
		for range rapid.IntRange(1, 6).Draw(t, "requests") {
			client := rapid.SampledFrom([]string{"", "one", strings.Repeat("long", 100)}).Draw(t, "client")
			var req kmsg.Request
			if rapid.Bool().Draw(t, "heartbeat") {
				beat := kmsg.NewPtrStreamsGroupHeartbeatRequest()
				beat.Version = 1
				beat.Group, beat.MemberID = "group", rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "member")
				beat.ClientTags = []kmsg.StreamsGroupHeartbeatRequestClientTag{{Key: "k", Value: strings.Repeat("x", rapid.IntRange(0, 3000).Draw(t, "size"))}}
				want[beat.MemberID] = client
				req = beat
			} else {
				other := kmsg.NewPtrMetadataRequest()
				other.Version = 9
				topic := kmsg.NewMetadataRequestTopic()
				topic.Topic = kmsg.StringPtr(strings.Repeat("t", rapid.IntRange(0, 3000).Draw(t, "size")))
				other.Topics = append(other.Topics, topic)
				req = other
			}
			stream = append(stream, kmsg.NewRequestFormatter(kmsg.FormatterClientID(client)).AppendRequest(nil, req, 1)...)
		}
		for len(stream) > 0 {
			n := min(rapid.IntRange(1, 2000).Draw(t, "bytes"), len(stream))
			f.read(stream[:n])
			stream = stream[n:]
		}
		for member, client := range want {
			if got := ids.of(member); got != client {
				t.Fatalf("%s is %q, not %q", member, got, client)
			}
		}
		if got := ids.of("nobody"); got != "" {
			t.Fatalf("nobody is %q", got)
		}
	})
}

// What is no request, such as TLS, is not looked at.
func TestFramesOfSomethingElse(t *testing.T) {
	var ids clientIDs
	f := frames{ids: &ids}
	f.read([]byte{0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc})
	f.read(make([]byte, 1<<16))
	if !f.lost || len(f.head) > lookedAt {
		t.Errorf("lost: %v, keeps %d bytes", f.lost, len(f.head))
	}
	g := frames{ids: &ids}
	g.read([]byte{0, 0, 0, 3, 0, 88, 0, 0, 0, 0, 2, 0, 88})
	if g.lost || len(g.head) != 0 {
		t.Errorf("requests too short to be any: %+v", g)
	}
}

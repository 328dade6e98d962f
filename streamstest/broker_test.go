package streamstest_test

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/odradek-go/odradek/streamstest"
)

func TestJoinAssignCommit(t *testing.T) {
	b, cl := start(t)
	a := newMember(t, b, cl, "a")
	resp := a.join(counting())
	if resp.ErrorCode != 0 || len(resp.Status) != 1 || resp.Status[0].StatusCode != streamstest.StatusMissingInternalTopics {
		t.Fatalf("join: error %d, status %v", resp.ErrorCode, resp.Status)
	}
	changelog := b.Cluster().TopicInfo("app-counts-changelog")
	if changelog == nil || *changelog.Configs["cleanup.policy"] != "compact" || len(b.Cluster().PartitionInfos("app-counts-changelog")) != 4 {
		t.Fatalf("the changelog is %+v", changelog)
	}
	settle(t, b, a)
	if !slices.Equal(a.active(), []int32{0, 1, 2, 3}) {
		t.Fatalf("a runs %v", a.active())
	}
	in := b.Cluster().TopicInfo("in").TopicID
	if code := commit(t, b, a, in, 2, 42, a.epoch); code != 0 {
		t.Fatalf("commit: error %d", code)
	}
	if offset, code := fetch(t, b, a, in, 2, a.epoch); offset != 42 || code != 0 {
		t.Fatalf("fetch: offset %d, error %d", offset, code)
	}
	if offset, code := fetch(t, b, a, in, 1, a.epoch); offset != -1 || code != 0 {
		t.Fatalf("fetch without commit: offset %d, error %d", offset, code)
	}
	if _, code := fetch(t, b, a, in, 2, a.epoch-1); code != kerr.StaleMemberEpoch.Code {
		t.Fatalf("fetch with an old epoch: error %d", code)
	}
	if code := commit(t, b, a, in, 2, 43, a.epoch+1); code != kerr.StaleMemberEpoch.Code {
		t.Fatalf("commit with a new epoch: error %d", code)
	}
}

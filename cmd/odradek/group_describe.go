package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var groupDescribe = &command{
	name:  "group describe",
	args:  "GROUP",
	short: "show members, assignments, epochs and topics",
	long: `Shows a streams group: its state and epochs, the subtopologies with their topics,
and the members with their tasks. A task is subtopology_partition; where a member is
still on its way to other tasks, TARGET says which.`,
	new: func(f *flag.FlagSet) func(context.Context, *env, string) error {
		offsets := f.Bool("offsets", false, "show what the group has committed, and how far behind it is, as well")
		return func(ctx context.Context, e *env, group string) error {
			ctx, client, done, err := e.connect(ctx)
			if err != nil {
				return err
			}
			defer done()
			g, err := describeGroup(ctx, client, group)
			if err != nil {
				return err
			}
			printGroup(e.stdout, &g)
			if *offsets {
				return printOffsets(ctx, e.stdout, kadm.NewClient(client), group)
			}
			return nil
		}
	},
}

func printGroup(w io.Writer, g *described) {
	t := newTable(w)
	t.row("Group:", g.Group)
	t.row("State:", g.State)
	epochs := fmt.Sprintf("%d, assignment %d", g.Epoch, g.AssignmentEpoch)
	if g.Topology != nil {
		epochs += fmt.Sprintf(", topology %d", g.Topology.Epoch)
	}
	t.row("Epoch:", epochs)
	if g.AssignorName != nil {
		t.row("Assignor:", *g.AssignorName)
	}
	t.row("Coordinator:", fmt.Sprintf("%d (%s)", g.coordinator.NodeID, net.JoinHostPort(g.coordinator.Host, strconv.Itoa(int(g.coordinator.Port)))))
	t.row("Members:", strconv.Itoa(len(g.Members)))
	t.flush()
	if g.Topology != nil {
		printTopics(w, g.Topology)
	}
	printMembers(w, g.Members)
}

func printTopics(w io.Writer, topology *kmsg.StreamsGroupDescribeResponseGroupTopology) {
	fmt.Fprintln(w)
	t := newTable(w, "SUBTOPOLOGY", "TOPIC", "ROLE", "PARTITIONS")
	for _, s := range topology.Subtopologies {
		for _, topic := range s.SourceTopics {
			t.row(s.SubtopologyID, topic, "source", "")
		}
		for _, topic := range s.RepartitionSourceTopics {
			t.row(s.SubtopologyID, topic.Topic, "repartition source", positive(topic.NumPartitions))
		}
		for _, topic := range s.RepartitionSinkTopics {
			t.row(s.SubtopologyID, topic, "repartition sink", "")
		}
		for _, topic := range s.StateChangelogTopics {
			t.row(s.SubtopologyID, topic.Topic, "changelog", positive(topic.NumPartitions))
		}
	}
	t.flush()
}

// positive shows a number that is known only if it is one.
func positive(n int32) string {
	if n == 0 {
		return ""
	}
	return number(n)
}

func printMembers(w io.Writer, members []kmsg.StreamsGroupDescribeResponseGroupMember) {
	if len(members) == 0 {
		return
	}
	fmt.Fprintln(w)
	t := newTable(w, "MEMBER", "EPOCH", "CLIENT", "HOST", "INSTANCE", "ENDPOINT", "PROCESS", "ACTIVE", "STANDBY", "WARM-UP", "TARGET")
	for _, m := range members {
		endpoint := ""
		if m.UserEndpoint != nil {
			endpoint = net.JoinHostPort(m.UserEndpoint.Host, strconv.Itoa(int(m.UserEndpoint.Port)))
		}
		is, target := tasksOf(m.Assignment), tasksOf(m.TargetAssignment)
		to := ""
		if is != target {
			to = fmt.Sprintf("active [%s] standby [%s] warm-up [%s]", target.active, target.standby, target.warmup)
		}
		t.row(m.MemberID, strconv.Itoa(int(m.MemberEpoch)), m.ClientID, m.ClientHost, text(m.InstanceID), endpoint, m.ProcessID,
			is.active, is.standby, is.warmup, to)
	}
	t.flush()
}

// tasks are a member's, each list as text.
type tasks struct{ active, standby, warmup string }

func tasksOf(a kmsg.StreamsAssignment) tasks {
	list := func(ids []kmsg.TaskIDs) string {
		var all []string
		for _, id := range ids {
			for _, p := range slices.Sorted(slices.Values(id.Partitions)) {
				all = append(all, fmt.Sprintf("%s_%d", id.SubtopologyID, p))
			}
		}
		return strings.Join(all, " ")
	}
	return tasks{list(a.ActiveTasks), list(a.StandbyTasks), list(a.WarmupTasks)}
}

// printOffsets shows what the group has committed.
func printOffsets(ctx context.Context, w io.Writer, adm *kadm.Client, group string) error {
	commits, err := adm.FetchOffsets(ctx, group)
	if err == nil {
		err = commits.Error()
	}
	if err != nil {
		return fmt.Errorf("fetch the offsets that group %q has committed: %w", group, err)
	}
	var ends kadm.ListedOffsets
	if len(commits) > 0 { // no topics would mean all
		if ends, err = adm.ListCommittedOffsets(ctx, commits.Partitions().Topics()...); err != nil {
			return fmt.Errorf("list where the topics end: %w", err)
		}
	}
	fmt.Fprintln(w)
	t := newTable(w, "TOPIC", "PARTITION", "COMMITTED", "END", "LAG")
	for _, o := range commits.Sorted() {
		end, lag := int64(-1), ""
		if listed, ok := ends.Lookup(o.Topic, o.Partition); ok && listed.Err == nil {
			end, lag = listed.Offset, strconv.FormatInt(listed.Offset-o.At, 10)
		}
		t.row(o.Topic, strconv.Itoa(int(o.Partition)), number(o.At), number(end), lag)
	}
	t.flush()
	return nil
}

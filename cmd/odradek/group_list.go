package main

import (
	"context"
	"flag"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
)

var groupList = &command{
	name:  "group list",
	short: "list the streams groups",
	long:  "Lists the cluster's streams groups, each with its state and its coordinator.",
	new: func(*flag.FlagSet) func(context.Context, *env, string) error {
		return func(ctx context.Context, e *env, _ string) error {
			ctx, client, done, err := e.connect(ctx)
			if err != nil {
				return err
			}
			defer done()
			groups, err := streamsGroups(ctx, kadm.NewClient(client))
			if err != nil {
				return err
			}
			t := newTable(e.stdout, "GROUP", "STATE", "COORDINATOR")
			for _, g := range groups.Sorted() {
				t.row(g.Group, g.State, strconv.Itoa(int(g.Coordinator)))
			}
			t.flush()
			return nil
		}
	},
}

func streamsGroups(ctx context.Context, adm *kadm.Client) (kadm.ListedGroups, error) {
	groups, err := adm.ListGroupsByType(ctx, []string{"streams"})
	if err != nil {
		return nil, fmt.Errorf("list groups: %w", err)
	}
	for name, g := range groups {
		if g.GroupType != "streams" { // brokers that don't know types list all
			delete(groups, name)
		}
	}
	return groups, nil
}

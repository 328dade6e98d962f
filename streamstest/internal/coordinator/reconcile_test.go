package coordinator

import "testing"

func grantOf(t *testing.T, text string, epoch int32) grant {
	t.Helper()
	tasks := roles(t, text)
	g := grant{active: make(map[TaskID]int32), standby: tasks.Standby, warmup: tasks.Warmup}
	for task := range tasks.Active {
		g.active[task] = epoch
	}
	return g
}

func TestReconcile(t *testing.T) {
	// The member is at epoch 3 on process p, the target at epoch 6. Others hold what they hold on their process.
	type other struct{ process, has, revoking string }
	for name, test := range map[string]struct {
		state         memberState
		has, revoking string
		owned         string // "-" if the member does not say
		target        string
		others        []other

		wantState     memberState
		wantEpoch     int32
		want          string
		wantRevoking  string
		wantOldActive string // active tasks of want that are still of the epoch before
	}{
		"first tasks":                  {stable, "", "", "", "a=0 s=1", nil, stable, 6, "a=0 s=1", "", ""},
		"the same tasks":               {stable, "a=0", "", "-", "a=0", nil, stable, 6, "a=0", "", "a=0"},
		"more tasks":                   {stable, "a=0", "", "-", "a=0,1", nil, stable, 6, "a=0,1", "", "a=0"},
		"some go first":                {stable, "a=0,1", "", "-", "a=0,2", nil, unrevokedTasks, 3, "a=0", "a=1", "a=0"},
		"some that it does not run":    {stable, "a=0,1", "", "a=0", "a=0,2", nil, stable, 6, "a=0,2", "", "a=0"},
		"not yet given up":             {unrevokedTasks, "a=0", "a=1", "a=0,1", "a=0,2", nil, unrevokedTasks, 3, "a=0", "a=1", "a=0"},
		"nothing said":                 {unrevokedTasks, "a=0", "a=1", "-", "a=0,2", nil, unrevokedTasks, 3, "a=0", "a=1", "a=0"},
		"given up":                     {unrevokedTasks, "a=0", "a=1", "a=0", "a=0,2", nil, stable, 6, "a=0,2", "", "a=0"},
		"given up, and more must go":   {unrevokedTasks, "a=0,2", "a=1", "a=0,2", "a=0", nil, unrevokedTasks, 4, "a=0", "a=2", "a=0"},
		"others still run it":          {stable, "a=0", "", "-", "a=0,1", []other{{"q", "a=1", ""}}, unreleasedTasks, 6, "a=0", "", "a=0"},
		"others are giving it up":      {stable, "a=0", "", "-", "a=0,1", []other{{"q", "", "a=1"}}, unreleasedTasks, 6, "a=0", "", "a=0"},
		"others have given it up":      {unreleasedTasks, "a=0", "", "-", "a=0,1", []other{{"q", "", ""}}, stable, 6, "a=0,1", "", "a=0"},
		"one of two":                   {stable, "", "", "-", "a=0,1", []other{{"q", "a=1", ""}}, unreleasedTasks, 6, "a=0", "", ""},
		"a standby elsewhere":          {stable, "", "", "-", "a=0", []other{{"q", "s=0", ""}}, stable, 6, "a=0", "", ""},
		"a standby in the process":     {stable, "", "", "-", "a=0", []other{{"p", "s=0", ""}}, unreleasedTasks, 6, "", "", ""},
		"a warm-up in the process":     {stable, "", "", "-", "a=0", []other{{"p", "", "w=0"}}, unreleasedTasks, 6, "", "", ""},
		"standby of one that runs":     {stable, "", "", "-", "s=0", []other{{"q", "a=0", ""}}, stable, 6, "s=0", "", ""},
		"… in the process":             {stable, "", "", "-", "s=0", []other{{"p", "a=0", ""}}, unreleasedTasks, 6, "", "", ""},
		"standby beside a standby":     {stable, "", "", "-", "s=0", []other{{"p", "s=0", ""}}, unreleasedTasks, 6, "", "", ""},
		"standby beside a warm-up":     {stable, "", "", "-", "s=0", []other{{"p", "w=0", ""}}, unreleasedTasks, 6, "", "", ""},
		"warm-up of one that runs":     {stable, "", "", "-", "w=0", []other{{"q", "a=0", ""}}, stable, 6, "w=0", "", ""},
		"… in the same process":        {stable, "", "", "-", "w=0", []other{{"p", "a=0", ""}}, unreleasedTasks, 6, "", "", ""},
		"warm-up beside a standby":     {stable, "", "", "-", "w=0", []other{{"p", "s=0", ""}}, unreleasedTasks, 6, "", "", ""},
		"warm-up beside a warm-up":     {stable, "", "", "-", "w=0", []other{{"p", "w=0", ""}}, unreleasedTasks, 6, "", "", ""},
		"a standby takes over":         {stable, "s=0", "", "-", "a=0", nil, stable, 6, "a=0", "", ""},
		"a warm-up takes over":         {stable, "w=0", "", "-", "a=0", nil, stable, 6, "a=0", "", ""},
		"it stays until it can":        {stable, "w=0", "", "-", "a=0", []other{{"q", "a=0", ""}}, unreleasedTasks, 6, "w=0", "", ""},
		"it stays while others go":     {stable, "w=0 a=1", "", "w=0 a=1", "a=0", nil, unrevokedTasks, 3, "w=0", "a=1", ""},
		"a standby as well":            {stable, "s=0 a=1", "", "s=0 a=1", "a=0", nil, unrevokedTasks, 3, "s=0", "a=1", ""},
		"a standby is to warm up":      {stable, "s=0", "", "-", "w=0", nil, stable, 6, "w=0", "", ""},
		"a warm-up is to stand by":     {stable, "w=0", "", "-", "s=0", nil, stable, 6, "s=0", "", ""},
		"an active one is to stand by": {stable, "a=0", "", "a=0", "s=0", []other{{"p", "", ""}}, unrevokedTasks, 3, "s=0", "a=0", ""},
		"and when it no longer runs":   {unrevokedTasks, "s=0", "a=0", "s=0", "s=0", nil, stable, 6, "s=0", "", ""},
		"a standby goes":               {stable, "s=0", "", "s=0", "", nil, unrevokedTasks, 3, "", "s=0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMember("m")
			m.processID, m.state, m.epoch, m.previousEpoch = "p", test.state, 3, 2
			if test.state == unreleasedTasks {
				m.epoch = 6
			}
			m.assigned, m.pendingRevocation = grantOf(t, test.has, 1), grantOf(t, test.revoking, 1)
			members := map[string]*member{"m": m}
			for i, o := range test.others {
				other := newMember(string(rune('a' + i)))
				other.processID = o.process
				other.assigned, other.pendingRevocation = grantOf(t, o.has, 1), grantOf(t, o.revoking, 1)
				members[other.id] = other
			}
			r := &reconciler{member: m, epoch: 6, target: roles(t, test.target), holders: newHolders(members)}
			if test.owned != "-" {
				owned := roles(t, test.owned)
				r.owned = &owned
			}
			before := *m
			got := r.reconcile()
			want := grantOf(t, test.want, 6)
			for task := range roles(t, test.wantOldActive).Active {
				want.active[task] = 1
			}
			if got.state != test.wantState || got.epoch != test.wantEpoch || !got.assigned.equal(want) || !got.pendingRevocation.equal(grantOf(t, test.wantRevoking, 1)) {
				t.Errorf("got state %d epoch %d %+v, revoking %+v", got.state, got.epoch, got.assigned, got.pendingRevocation)
			}
			if !m.assigned.equal(before.assigned) || m.epoch != before.epoch {
				t.Error("the member was changed in place")
			}
			if got != m && got.previousEpoch != before.epoch {
				t.Errorf("the previous epoch is %d", got.previousEpoch)
			}
		})
	}
}

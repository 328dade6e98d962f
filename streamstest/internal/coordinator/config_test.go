package coordinator

import (
	"slices"
	"testing"
	"time"
)

func TestGroupConfigs(t *testing.T) {
	f := newFixture(t, nil)
	set := func(name, value string) *Error {
		return f.c.AlterGroupConfigs(app, map[string]string{name: value}, nil, false)
	}
	for name, values := range map[string][]string{
		configSessionTimeout:        {"", "x", "0", "5000", "99999999999"},
		configHeartbeatInterval:     {"0", "-1", "45000"},
		configInitialRebalanceDelay: {"-1"},
		configAssignmentInterval:    {"-1"},
		configTaskOffsetInterval:    {"0"},
		configNumStandbyReplicas:    {"-1", "3", "one"},
		configNumWarmupReplicas:     {"-1", "21"},
		configAcceptableRecoveryLag: {"-1"},
		configRackAwareTags:         {"a,a"},
		configAssignorName:          {"rack-aware"},
		"streams.what":              {"1"},
	} {
		for _, value := range values {
			if err := set(name, value); err == nil {
				t.Errorf("%s can be %q", name, value)
			}
		}
	}
	for name, value := range map[string]string{
		configSessionTimeout: "5001", configHeartbeatInterval: "1", configInitialRebalanceDelay: "2", configAssignmentInterval: "3",
		configTaskOffsetInterval: "4", configNumStandbyReplicas: "2", configNumWarmupReplicas: "5", configAcceptableRecoveryLag: "6",
		configRackAwareTags: "a, b", configAssignorName: "sticky",
	} {
		if err := set(name, value); err != nil {
			t.Errorf("%s cannot be %q: %v", name, value, err)
		}
	}
	got := f.c.configOf(app)
	if got.SessionTimeout != 5001*time.Millisecond || got.HeartbeatInterval != time.Millisecond || got.InitialRebalanceDelay != 2*time.Millisecond ||
		got.AssignmentInterval != 3*time.Millisecond || got.TaskOffsetInterval != 4*time.Millisecond || got.NumStandbyReplicas != 2 ||
		got.NumWarmupReplicas != 5 || got.AcceptableRecoveryLag != 6 || !slices.Equal(got.RackAwareTags, []string{"a", "b"}) {
		t.Errorf("%+v", got)
	}
	if other := f.c.configOf("other"); other.NumStandbyReplicas != 0 {
		t.Errorf("another group has the config: %+v", other)
	}
	if err := f.c.AlterGroupConfigs(app, map[string]string{configNumStandbyReplicas: "1"}, nil, true); err != nil || f.c.configOf(app).NumStandbyReplicas != 2 {
		t.Errorf("validate only: %v, %+v", err, f.c.configOf(app))
	}
	if err := f.c.AlterGroupConfigs(app, map[string]string{configNumStandbyReplicas: "1", configNumWarmupReplicas: "21"}, nil, false); err == nil || f.c.configOf(app).NumStandbyReplicas != 2 {
		t.Errorf("half a change: %v, %+v", err, f.c.configOf(app))
	}
	if err := f.c.AlterGroupConfigs(app, nil, []string{configNumStandbyReplicas}, false); err != nil || f.c.configOf(app).NumStandbyReplicas != 0 {
		t.Errorf("remove: %v, %+v", err, f.c.configOf(app))
	}
	if err := f.c.AlterGroupConfigs(app, nil, []string{"streams.what"}, false); err == nil {
		t.Error("a config that there is not can be removed")
	}
	for _, c := range f.c.GroupConfigs(app) {
		if want := c.Name != configNumStandbyReplicas; c.OfGroup != want {
			t.Errorf("%+v", c)
		}
	}
}

func TestConfigValidate(t *testing.T) {
	good := Config{SessionTimeout: 2 * time.Second, HeartbeatInterval: time.Second, TaskOffsetInterval: time.Second, MaxSize: 1}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Config){
		"session":  func(c *Config) { c.SessionTimeout = time.Second },
		"zero":     func(c *Config) { c.HeartbeatInterval = 0 },
		"too fine": func(c *Config) { c.TaskOffsetInterval = time.Microsecond },
		"size":     func(c *Config) { c.MaxSize = 0 },
	} {
		bad := good
		change(&bad)
		if bad.Validate() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A changed number of standbys or set of tags makes the group be assigned again.
func TestConfigChangesRebalance(t *testing.T) {
	f := newFixture(t, nil)
	f.alone()
	for i, configs := range []map[string]string{{configNumStandbyReplicas: "1"}, {configRackAwareTags: "zone"}} {
		if err := f.c.AlterGroupConfigs(app, configs, nil, false); err != nil {
			t.Fatal(err)
		}
		f.expect("a", f.send("a", int32(3+i)), 0, int32(4+i), nil)
	}
	if err := f.c.AlterGroupConfigs(app, map[string]string{configHeartbeatInterval: "77"}, nil, false); err != nil {
		t.Fatal(err)
	}
	resp := f.send("a", 5)
	f.expect("a", resp, 0, 5, nil)
	if resp.HeartbeatIntervalMillis != 77 {
		t.Errorf("every %d ms", resp.HeartbeatIntervalMillis)
	}
}

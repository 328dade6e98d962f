package coordinator

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Config are the broker's settings for streams groups. Durations have millisecond precision.
type Config struct {
	SessionTimeout        time.Duration
	HeartbeatInterval     time.Duration
	InitialRebalanceDelay time.Duration // how long the first member of an empty group waits for others; 0: not at all
	AssignmentInterval    time.Duration // the least time between two target assignments; 0: none
	TaskOffsetInterval    time.Duration // how often members report changelog offsets
	NumStandbyReplicas    int
	NumWarmupReplicas     int      // how many warm-up tasks a group may have at a time; 0: tasks move at once
	AcceptableRecoveryLag int64    // records by which a warm-up task may be behind and still take over
	RackAwareTags         []string // client tags that every member should have

	MaxSize              int  // members of a group
	TopologyDescriptions bool // ask members for a description of their topology (KIP-1331)
	SourceTopicRegex     bool // take patterns of source topics
}

// Names of the group configs.
const (
	configSessionTimeout        = "streams.session.timeout.ms"
	configHeartbeatInterval     = "streams.heartbeat.interval.ms"
	configInitialRebalanceDelay = "streams.initial.rebalance.delay.ms"
	configAssignmentInterval    = "streams.assignment.interval.ms"
	configTaskOffsetInterval    = "streams.task.offset.interval.ms"
	configNumStandbyReplicas    = "streams.num.standby.replicas"
	configNumWarmupReplicas     = "streams.num.warmup.replicas"
	configAcceptableRecoveryLag = "streams.acceptable.recovery.lag"
	configRackAwareTags         = "streams.rack.aware.assignment.tags"
	configAssignorName          = "streams.assignor.name"
)

// AssignorName is the one task assignor there is.
const AssignorName = "sticky"

// Limits that a 4.4 broker has by default. Its limits on time-outs and intervals are left out, because tests want them
// short.
const (
	maxStandbyReplicas = 2
	maxWarmupReplicas  = 20
)

// Validate reports the first setting that no broker would start with.
func (c Config) Validate() error {
	if _, err := c.with(nil); err != nil {
		return err
	}
	if c.MaxSize < 1 {
		return badConfig("The maximum size of a streams group is %d; it must be at least 1.", c.MaxSize)
	}
	return nil
}

func badConfig(format string, args ...any) *Error {
	return errorf(kerr.InvalidConfig, format, args...)
}

// with returns the settings of a group: the broker's, overridden by the group's own.
func (c Config) with(overrides map[string]string) (Config, *Error) {
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		if err := c.set(name, overrides[name]); err != nil {
			return c, err
		}
	}
	for _, l := range []struct {
		name  string
		value int64
		least int64
	}{
		{configSessionTimeout, c.SessionTimeout.Milliseconds(), 1},
		{configHeartbeatInterval, c.HeartbeatInterval.Milliseconds(), 1},
		{configTaskOffsetInterval, c.TaskOffsetInterval.Milliseconds(), 1},
		{configInitialRebalanceDelay, c.InitialRebalanceDelay.Milliseconds(), 0},
		{configAssignmentInterval, c.AssignmentInterval.Milliseconds(), 0},
		{configNumStandbyReplicas, int64(c.NumStandbyReplicas), 0},
		{configNumWarmupReplicas, int64(c.NumWarmupReplicas), 0},
		{configAcceptableRecoveryLag, c.AcceptableRecoveryLag, 0},
	} {
		if l.value < l.least {
			return c, badConfig("Invalid value %d for configuration %s: Value must be at least %d", l.value, l.name, l.least)
		}
	}
	switch {
	case c.NumStandbyReplicas > maxStandbyReplicas:
		return c, badConfig("%s must be less than or equal to %d", configNumStandbyReplicas, maxStandbyReplicas)
	case c.NumWarmupReplicas > maxWarmupReplicas:
		return c, badConfig("%s must be less than or equal to %d", configNumWarmupReplicas, maxWarmupReplicas)
	case c.SessionTimeout <= c.HeartbeatInterval:
		return c, badConfig("%s must be greater than %s", configSessionTimeout, configHeartbeatInterval)
	}
	if tags := slices.Sorted(slices.Values(c.RackAwareTags)); len(slices.Compact(tags)) != len(c.RackAwareTags) {
		return c, badConfig("%s must not contain duplicate tag keys.", configRackAwareTags)
	}
	return c, nil
}

func (c *Config) set(name, value string) *Error {
	parse := func(bits int, kind string) (int64, *Error) {
		n, err := strconv.ParseInt(value, 10, bits)
		if err != nil {
			return 0, badConfig("Invalid value %s for configuration %s: Not a number of type %s", value, name, kind)
		}
		return n, nil
	}
	millis := func(to *time.Duration) *Error {
		n, err := parse(32, "INT")
		*to = time.Duration(n) * time.Millisecond
		return err
	}
	count := func(to *int) *Error {
		n, err := parse(32, "INT")
		*to = int(n)
		return err
	}
	var err *Error
	switch name {
	case configSessionTimeout:
		err = millis(&c.SessionTimeout)
	case configHeartbeatInterval:
		err = millis(&c.HeartbeatInterval)
	case configInitialRebalanceDelay:
		err = millis(&c.InitialRebalanceDelay)
	case configAssignmentInterval:
		err = millis(&c.AssignmentInterval)
	case configTaskOffsetInterval:
		err = millis(&c.TaskOffsetInterval)
	case configNumStandbyReplicas:
		err = count(&c.NumStandbyReplicas)
	case configNumWarmupReplicas:
		err = count(&c.NumWarmupReplicas)
	case configAcceptableRecoveryLag:
		c.AcceptableRecoveryLag, err = parse(64, "LONG")
	case configRackAwareTags:
		c.RackAwareTags = splitList(value)
	case configAssignorName:
		if value != AssignorName {
			err = badConfig("%s '%s' is not a registered task assignor. Registered assignors are: [%s].", name, value, AssignorName)
		}
	default:
		err = badConfig("Unknown group config name: %s", name)
	}
	return err
}

// values are the settings as group configs.
func (c Config) values() map[string]string {
	ms := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	return map[string]string{
		configSessionTimeout:        ms(c.SessionTimeout),
		configHeartbeatInterval:     ms(c.HeartbeatInterval),
		configInitialRebalanceDelay: ms(c.InitialRebalanceDelay),
		configAssignmentInterval:    ms(c.AssignmentInterval),
		configTaskOffsetInterval:    ms(c.TaskOffsetInterval),
		configNumStandbyReplicas:    strconv.Itoa(c.NumStandbyReplicas),
		configNumWarmupReplicas:     strconv.Itoa(c.NumWarmupReplicas),
		configAcceptableRecoveryLag: strconv.FormatInt(c.AcceptableRecoveryLag, 10),
		configRackAwareTags:         strings.Join(c.RackAwareTags, ","),
		configAssignorName:          AssignorName,
	}
}

// assignmentConfig is the part of the settings whose change triggers a rebalance.
type assignmentConfig struct {
	standbys int
	tags     string
}

func (c Config) assignmentConfig() assignmentConfig {
	return assignmentConfig{standbys: c.NumStandbyReplicas, tags: strings.Join(c.RackAwareTags, ",")}
}

// IsGroupConfig reports whether a group config is one of those for streams groups.
func IsGroupConfig(name string) bool { return strings.HasPrefix(name, "streams.") }

// GroupConfig is the effective value of a group config, and whether the group itself sets it.
type GroupConfig struct {
	Name, Value string
	OfGroup     bool
}

// GroupConfigs returns all streams configs of a group, by name. The group need not exist.
func (c *Coordinator) GroupConfigs(group string) []GroupConfig {
	own := c.overrides[group]
	values := c.configOf(group).values()
	var out []GroupConfig
	for _, name := range slices.Sorted(maps.Keys(values)) {
		_, set := own[name]
		out = append(out, GroupConfig{Name: name, Value: values[name], OfGroup: set})
	}
	return out
}

// AlterGroupConfigs sets and removes streams configs of a group, all of them or, with an error, none. The group need
// not exist; the next heartbeat of a member sees the change. With validateOnly, nothing is changed.
func (c *Coordinator) AlterGroupConfigs(group string, set map[string]string, remove []string, validateOnly bool) *Error {
	own := maps.Clone(c.overrides[group])
	if own == nil {
		own = make(map[string]string)
	}
	maps.Copy(own, set)
	for _, name := range remove {
		if _, known := c.config.values()[name]; !known {
			return badConfig("Unknown group config name: %s", name)
		}
		delete(own, name)
	}
	if _, err := c.config.with(own); err != nil {
		return err
	}
	if !validateOnly {
		c.overrides[group] = own
	}
	return nil
}

// configOf are the settings in force for a group. Overrides were validated when they were set.
func (c *Coordinator) configOf(group string) Config {
	config, _ := c.config.with(c.overrides[group])
	return config
}

func splitList(s string) []string {
	var out []string
	for _, e := range strings.Split(s, ",") {
		if e = strings.TrimSpace(e); e != "" {
			out = append(out, e)
		}
	}
	return out
}

package coordinator

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
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
	_, err := c.with(nil)
	if err == nil && c.MaxSize < 1 {
		err = fmt.Errorf("the maximum size of a streams group is %d; it must be at least 1", c.MaxSize)
	}
	return err
}

// with returns the settings of a group: the broker's, overridden by the group's own.
func (c Config) with(overrides map[string]string) (Config, error) {
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		if err := c.set(name, overrides[name]); err != nil {
			return c, err
		}
	}
	for _, d := range []struct {
		name     string
		value    time.Duration
		positive bool
	}{
		{configSessionTimeout, c.SessionTimeout, true},
		{configHeartbeatInterval, c.HeartbeatInterval, true},
		{configTaskOffsetInterval, c.TaskOffsetInterval, true},
		{configInitialRebalanceDelay, c.InitialRebalanceDelay, false},
		{configAssignmentInterval, c.AssignmentInterval, false},
	} {
		if d.value < 0 || d.positive && d.value < time.Millisecond {
			return c, fmt.Errorf("%s is %v, which is too short", d.name, d.value)
		}
	}
	switch {
	case c.SessionTimeout <= c.HeartbeatInterval:
		return c, fmt.Errorf("%s must be greater than %s", configSessionTimeout, configHeartbeatInterval)
	case c.NumStandbyReplicas < 0 || c.NumStandbyReplicas > maxStandbyReplicas:
		return c, fmt.Errorf("%s must be less than or equal to %d, and not negative", configNumStandbyReplicas, maxStandbyReplicas)
	case c.NumWarmupReplicas < 0 || c.NumWarmupReplicas > maxWarmupReplicas:
		return c, fmt.Errorf("%s must be less than or equal to %d, and not negative", configNumWarmupReplicas, maxWarmupReplicas)
	case c.AcceptableRecoveryLag < 0:
		return c, fmt.Errorf("%s must not be negative", configAcceptableRecoveryLag)
	}
	if tags := slices.Sorted(slices.Values(c.RackAwareTags)); len(slices.Compact(tags)) != len(c.RackAwareTags) {
		return c, fmt.Errorf("%s must not contain duplicate tag keys", configRackAwareTags)
	}
	return c, nil
}

func (c *Config) set(name, value string) error {
	var err error
	switch name {
	case configSessionTimeout:
		c.SessionTimeout, err = millis(value)
	case configHeartbeatInterval:
		c.HeartbeatInterval, err = millis(value)
	case configInitialRebalanceDelay:
		c.InitialRebalanceDelay, err = millis(value)
	case configAssignmentInterval:
		c.AssignmentInterval, err = millis(value)
	case configTaskOffsetInterval:
		c.TaskOffsetInterval, err = millis(value)
	case configNumStandbyReplicas:
		c.NumStandbyReplicas, err = strconv.Atoi(value)
	case configNumWarmupReplicas:
		c.NumWarmupReplicas, err = strconv.Atoi(value)
	case configAcceptableRecoveryLag:
		c.AcceptableRecoveryLag, err = strconv.ParseInt(value, 10, 64)
	case configRackAwareTags:
		c.RackAwareTags = splitList(value)
	case configAssignorName:
		if value != AssignorName {
			return fmt.Errorf("%s '%s' is not a registered task assignor. Registered assignors are: [%s]", name, value, AssignorName)
		}
	default:
		return fmt.Errorf("unknown group config name: %s", name)
	}
	if err != nil {
		return fmt.Errorf("invalid value %q for group config %s: %w", value, name, err)
	}
	return nil
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
func (c *Coordinator) AlterGroupConfigs(group string, set map[string]string, remove []string, validateOnly bool) error {
	own := maps.Clone(c.overrides[group])
	if own == nil {
		own = make(map[string]string)
	}
	maps.Copy(own, set)
	for _, name := range remove {
		if _, known := c.config.values()[name]; !known {
			return fmt.Errorf("unknown group config name: %s", name)
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

func millis(s string) (time.Duration, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	return time.Duration(n) * time.Millisecond, err
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

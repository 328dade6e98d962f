package coordinator

import (
	"regexp"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// validatePatterns checks the patterns of source topics, which Kafka 4.4 does not take.
func validatePatterns(t *kmsg.StreamsGroupHeartbeatRequestTopology, taken bool) *Error {
	for _, s := range t.Subtopologies {
		if len(s.SourceTopicRegex) > 0 && !taken {
			return invalid("Regular expressions for source topics are not supported yet.")
		}
		for _, pattern := range s.SourceTopicRegex {
			if _, err := wholeName(pattern); err != nil {
				return errorf(kerr.InvalidRegularExpression, "SourceTopicRegex `%s` is not a valid regular expression: %v.", pattern, err)
			}
		}
	}
	return nil
}

// wholeName compiles a pattern of topics, which has to match the whole of a name.
func wholeName(pattern string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(pattern); err != nil {
		return nil, err
	}
	return regexp.Compile("^(?:" + pattern + ")$")
}

func (t *topology) hasPatterns() bool {
	return slices.ContainsFunc(t.subtopologies, func(s subtopology) bool { return len(s.SourceTopicRegex) > 0 })
}

// resolve turns patterns into the topics that match them now, behind the source topics that are there. Kafka's own
// topics match none. A subtopology may then have no topic and no task; but what it writes to has partitions.
func (t *topology) resolve(names []string) *topology {
	if !t.hasPatterns() {
		return t
	}
	wire := &kmsg.StreamsGroupHeartbeatRequestTopology{Epoch: t.epoch}
	var unmatched []string
	for _, s := range t.subtopologies {
		indexes := make([][]int16, len(s.SourceTopicRegex)) // of what matches each pattern
		s.SourceTopics = slices.Clone(s.SourceTopics)
		for i, pattern := range s.SourceTopicRegex {
			re, err := wholeName(pattern)
			for _, name := range names {
				if err != nil || strings.HasPrefix(name, "__") || !re.MatchString(name) {
					continue
				}
				at := slices.Index(s.SourceTopics, name)
				if at < 0 {
					at = len(s.SourceTopics)
					s.SourceTopics = append(s.SourceTopics, name)
				}
				indexes[i] = append(indexes[i], int16(at))
			}
		}
		if len(s.SourceTopics)+len(s.RepartitionSourceTopics) == 0 && len(s.RepartitionSinkTopics) > 0 {
			unmatched = append(unmatched, s.SourceTopicRegex...)
		}
		s.CopartitionGroups = slices.Clone(s.CopartitionGroups)
		for i := range s.CopartitionGroups {
			g := &s.CopartitionGroups[i]
			g.SourceTopics = slices.Clone(g.SourceTopics)
			for _, p := range g.SourceTopicRegex {
				if int(p) < len(indexes) {
					g.SourceTopics = append(g.SourceTopics, indexes[p]...)
				}
			}
		}
		wire.Subtopologies = append(wire.Subtopologies, s)
	}
	resolved := newTopology(wire)
	resolved.unmatched = unmatched
	return resolved
}

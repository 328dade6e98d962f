package kafkatest

import (
	"context"
	"fmt"
)

// Tool runs one of Kafka's command line tools to its end, named by its class,
// such as "org.apache.kafka.tools.streams.StreamsGroupCommand" or
// "org.apache.kafka.tools.TopicCommand", and returns what it wrote to standard
// output. Arguments are the tool's own; most want "--bootstrap-server" with
// [Kafka.Bootstrap].
//
// The error wraps an [*os/exec.ExitError] if the tool ran and failed, and quotes
// the end of what it printed. It is killed when the context ends.
func (k *Kafka) Tool(ctx context.Context, class string, args ...string) (stdout string, err error) {
	stdout, err = run(k.java(quickJVM, "warn").cmd(ctx, class, args...))
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return stdout, fmt.Errorf("kafkatest: %s %q: %w", class, args, err)
	}
	return stdout, nil
}

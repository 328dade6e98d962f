package iq_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// What the toString methods of Java's metadata classes say, in the form that the tests
// give to ours.

var (
	javaHost = regexp.MustCompile(`HostInfo\{host='([^']*)', port=(\d+)\}`)
	javaKey  = regexp.MustCompile(`activeHost=(.*), standbyHosts=\[(.*)\], partition=(\d+)\}`)
	javaMeta = regexp.MustCompile(`StreamsMetadata \{hostInfo=(.*?), stateStoreNames=(\[.*?\]), topicPartitions=\[(.*?)\], standbyStateStoreNames=(\[.*?\]), standbyTopicPartitions=\[(.*?)\]\}`)
)

func javaHosts(text string) (hosts []string) {
	for _, m := range javaHost.FindAllStringSubmatch(text, -1) {
		hosts = append(hosts, m[1]+":"+m[2])
	}
	slices.Sort(hosts)
	return hosts
}

func javaKeyMetadata(text string) string {
	m := javaKey.FindStringSubmatch(text)
	if m == nil {
		return "not understood: " + text
	}
	return javaHosts(m[1])[0] + " " + fmt.Sprint(javaHosts(m[2])) + " " + m[3]
}

func javaPartitions(list string) (ps []int) {
	for tp := range strings.SplitSeq(list, ", ") {
		if p, err := strconv.Atoi(tp[strings.LastIndex(tp, "-")+1:]); err == nil {
			ps = append(ps, p)
		}
	}
	slices.Sort(ps)
	return ps
}

func javaMetadata(text string) string {
	var out []string
	for _, m := range javaMeta.FindAllStringSubmatch(text, -1) {
		if m[3]+m[5] != "" {
			out = append(out, fmt.Sprintln(javaHosts(m[1])[0], m[2], javaPartitions(m[3]), m[4], javaPartitions(m[5])))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "")
}

package main

import (
	"regexp"
	"strings"
)

// foreignKeyTopic is how topics of foreign-key joins were called before their
// operators could be named.
var foreignKeyTopic = regexp.MustCompile(`.-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic$`)

// internalTopic says whether a topic is called as Kafka Streams calls an internal
// topic of an application.
func internalTopic(applicationID, topic string) bool {
	if !strings.HasPrefix(topic, applicationID+"-") {
		return false
	}
	for _, suffix := range []string{"-changelog", "-repartition", "-subscription-registration-topic", "-subscription-response-topic"} {
		if strings.HasSuffix(topic, suffix) {
			return true
		}
	}
	return foreignKeyTopic.MatchString(topic)
}

// owner is another group whose id begins with the application's, and to which a
// topic belongs by its name; empty if there is none.
func owner(groups []string, applicationID, topic string) string {
	for _, g := range groups {
		if strings.HasPrefix(g, applicationID+"-") && internalTopic(g, topic) {
			return g
		}
	}
	return ""
}

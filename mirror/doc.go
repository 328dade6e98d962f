// Package mirror is for applications that fail over to a mirrored cluster
// (KIP-1279, Cluster Mirroring): it reads and writes how far a mirror's topics
// were mirrored, and says whether and from where an application can start on the
// mirror.
//
// KIP-1279 is not part of any Kafka release yet. ReadMirrorStates and
// WriteMirrorStates have no API keys, the states no final numbers, and brokers of
// Apache Kafka up to 4.4 don't know the requests. So the numbers are yours to
// give, in [Config]; they are checked against what the brokers announce. What
// speaks the requests today are brokers with the KIP's patch, and the embedded
// broker of package streamstest.
//
// [Client] sends the requests. [ReadMirrorStatesRequest] and the other three
// types are the messages themselves (flexible version 0), to be sent with any
// client that takes a [kmsg.Request].
//
// [Capture] takes a [Checkpoint] of an application on its cluster: what it has
// committed, and where its internal topics ended at that moment. [Safe] holds it
// against what was mirrored, and returns the [Plan] to start by, or why there is
// none; [Client.Examine] collects what it wants to know, and [Plan.Apply]
// prepares the mirror, so that the application starts where the plan says.
//
// The package may import kgo, kadm, kmsg, kerr and internal/restart, and no other
// package of this module. Begin with [NewClient] and [Safe].
package mirror

// Checker shows that nothing is lost and nothing is done twice, whatever breaks.
//
//	go run ./integration/checker
//
// starts Apache Kafka, and processes that run a pipeline with a join, a repartition
// and a count. While records flow it kills processes, stops some for longer than their
// session and wakes them, restarts the broker, and cuts, delays and stalls connections
// in the middle of commits, through a proxy of its own. Then it reads what is committed
// and compares it with what an undisturbed run gives: for exactly once each key's counts
// must be 1, 2, 3 … without a gap and without a repetition, and the store's changelog
// must end with the last of them; for at least once none may be missing.
//
// Brokers are stopped while no transaction is being ended, unless there are several of
// them (-nodes 3): see stopBroker.
//
// It prints the faults that were made and the records that were checked; see -help.
// Begin with check in check.go.
package main

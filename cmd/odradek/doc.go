// Odradek is a command line for streams groups (KIP-1071): it describes groups and
// topologies, resets applications, and shows whether an application can start on a
// mirror (KIP-1279).
//
//	odradek group list
//	odradek group describe wordcount
//	odradek topology describe wordcount
//	odradek group reset wordcount -input-topics lines -dry-run
//	odradek mirror status dr -group wordcount -api-keys 1000,1001
//
// odradek -h lists the commands, and each has a -h of its own. Exit codes are 0 for
// success, 1 for a failure, 2 for a wrong command line, and 3 where a mirror is not
// safe to start on.
//
// The package may import the public packages of this module, and internal/restart.
// Begin with main.go; commands.go lists the commands, which have a file each.
package main

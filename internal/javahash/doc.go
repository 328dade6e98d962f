// Package javahash knows the orders in which Java's hash tables are walked. Some of
// them can be seen from outside: in topologies, which the group coordinator
// compares, in descriptions, in the metadata of commits and in the changelogs of
// suppressions.
//
// It imports nothing of this module. Begin with [Order].
package javahash

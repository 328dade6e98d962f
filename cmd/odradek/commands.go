package main

// commands are all commands, in the order in which they are listed.
var commands = []*command{
	groupList,
	groupDescribe,
	groupReset,
	topologyDescribe,
	mirrorStatus,
	mirrorCheckpoint,
	mirrorPrepare,
}

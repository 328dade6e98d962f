package main

// sample is the text that is counted where none is given.
const sample = `A task is a partition of a subtopology.
A member owns tasks, and a task has one owner.
When a member comes, tasks move; when a member goes, tasks move again.
A task that moves takes nothing along: its state waits in a changelog,
its place waits in a committed offset, and the next owner begins where the last one ended.
The coordinator knows who owns what. The members know only what they own.
A record comes in, a count goes up, a record goes out.
Stop a member half-way, and start it again: the counts are the same.
`

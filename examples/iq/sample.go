package main

// sample is what is counted on the embedded broker.
const sample = `the ship left the harbour in the rain
the rain followed the ship
a shepherd saw the ship from the shore
the shore was long and the shepherd was alone
and then the rain was over
`

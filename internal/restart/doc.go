// Package restart changes what an application begins with when it starts again:
// the offsets that its group has committed, and its internal topics.
//
// It may import kgo, kadm, kmsg and kerr, and no other package of this module. Begin with
// Change.Apply.
package restart

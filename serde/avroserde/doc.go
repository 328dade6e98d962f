// Package avroserde has the serde of Avro values. It is a package of its own so that
// programs without them don't link an Avro library, which is hamba/avro.
//
// The bytes are those of the value alone, as Avro's binary encoding has them: whoever
// reads them must know the schema that they were written with. With a schema registry
// it is found by an id that stands before the value: give the serde to
// srserde.New.
//
// The package imports nothing of the project. Begin with [New].
package avroserde

import java.util.Properties;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.Stores;

/** The Java contestant. Arguments: bootstrap servers, application id, mode, input topic, output topic, state folder. */
public class Bench {
    public static void main(String[] args) throws Exception {
        Properties p = new Properties();
        p.put("bootstrap.servers", args[0]);
        p.put("application.id", args[1]);
        p.put("state.dir", args[5]);
        p.put("group.protocol", "streams");
        p.put("auto.offset.reset", "earliest");
        p.put("statestore.cache.max.bytes", "0");
        String mode = args[2];
        if (mode.endsWith("-eos")) {
            mode = mode.substring(0, mode.length() - 4);
            p.put("processing.guarantee", "exactly_once_v2");
        }
        StreamsBuilder b = new StreamsBuilder();
        KStream<String, byte[]> in = b.stream(args[3], Consumed.with(Serdes.String(), Serdes.ByteArray()));
        if (mode.equals("map")) {
            in.mapValues(Bench::upper).to(args[4], Produced.with(Serdes.String(), Serdes.ByteArray()));
        } else if (mode.equals("restore")) {
            in.groupByKey(Grouped.with(Serdes.String(), Serdes.ByteArray()))
                .reduce((before, now) -> now, Materialized.<String, byte[]>as(Stores.persistentKeyValueStore("store"))
                    .withKeySerde(Serdes.String()).withValueSerde(Serdes.ByteArray()))
                .toStream().to(args[4], Produced.with(Serdes.String(), Serdes.ByteArray()));
        } else {
            in.groupByKey(Grouped.with(Serdes.String(), Serdes.ByteArray()))
                .count(Materialized.<String, Long>as(mode.equals("disk") ? Stores.persistentKeyValueStore("counts") : Stores.inMemoryKeyValueStore("counts"))
                    .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
                .toStream().to(args[4], Produced.with(Serdes.String(), Serdes.Long()));
        }
        KafkaStreams streams = new KafkaStreams(b.build(), p);
        streams.setGlobalStateRestoreListener(new StateRestoreListener() {
            @Override
            public void onRestoreStart(TopicPartition partition, String store, long start, long end) {
                System.out.println("begin " + System.currentTimeMillis());
            }

            @Override
            public void onBatchRestored(TopicPartition partition, String store, long end, long n) {
            }

            @Override
            public void onRestoreEnd(TopicPartition partition, String store, long n) {
                System.out.println("end " + System.currentTimeMillis());
            }
        });
        streams.start();
        while (System.in.read() >= 0) {
            // until it is ended
        }
    }

    private static byte[] upper(byte[] in) {
        byte[] out = new byte[in.length];
        for (int i = 0; i < in.length; i++) {
            byte c = in[i];
            out[i] = c >= 'a' && c <= 'z' ? (byte) (c - 32) : c;
        }
        return out;
    }
}

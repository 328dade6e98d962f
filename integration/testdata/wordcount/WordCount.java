import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.Stores;

/**
 * Word count in Java, the same application as the tests' in Go. Arguments: bootstrap servers, application id, input
 * topic, output topic, state folder. It prints its states and ends with standard input; after the line "shutdown" there its
 * next record fails, and it asks for the shutdown of the application.
 */
public class WordCount {
    private static volatile boolean fail;

    public static void main(String[] args) throws Exception {
        Properties p = new Properties();
        p.put("bootstrap.servers", args[0]);
        p.put("application.id", args[1]);
        p.put("state.dir", args[4]);
        p.put("group.protocol", "streams");
        p.put("commit.interval.ms", "200");
        p.put("statestore.cache.max.bytes", "0");
        p.put("auto.offset.reset", "earliest");
        p.put("default.key.serde", Serdes.StringSerde.class);
        p.put("default.value.serde", Serdes.StringSerde.class);
        StreamsBuilder b = new StreamsBuilder();
        Serde<String> values = Serdes.serdeFrom(new StringSerializer(), new StringDeserializer() {
            @Override
            public String deserialize(String topic, byte[] data) {
                if (fail) {
                    throw new IllegalStateException("told to fail");
                }
                return super.deserialize(topic, data);
            }
        });
        b.stream(args[2], Consumed.with(Serdes.String(), values))
            .flatMapValues(v -> Arrays.stream(v.split("\\s+")).filter(w -> !w.isEmpty()).toList())
            .groupBy((k, w) -> w, Grouped.<String, String>as("words").withKeySerde(Serdes.String()).withValueSerde(values))
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts"))
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
            .toStream()
            .to(args[3]);
        KafkaStreams streams = new KafkaStreams(b.build(), p);
        streams.setStateListener((to, from) -> System.out.println(to));
        streams.setUncaughtExceptionHandler(e -> {
            System.out.println("FAILED " + e);
            return StreamThreadExceptionResponse.SHUTDOWN_APPLICATION;
        });
        streams.start();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            fail = line.equals("shutdown");
        }
        streams.close();
    }
}

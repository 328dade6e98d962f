import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TableJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.WindowStore;

/**
 * The Java twins of the tests' programs in Go. Arguments: bootstrap servers, application id, state folder, the program's name,
 * what the names of its topics begin with. It prints its states and ends with standard input.
 */
public class Twins {
    public static void main(String[] args) throws Exception {
        Properties p = new Properties();
        p.put("bootstrap.servers", args[0]);
        p.put("application.id", args[1]);
        p.put("state.dir", args[2]);
        p.put("group.protocol", "streams");
        p.put("commit.interval.ms", "200");
        p.put("statestore.cache.max.bytes", "0");
        p.put("default.key.serde", Serdes.StringSerde.class);
        p.put("default.value.serde", Serdes.StringSerde.class);
        StreamsBuilder b = new StreamsBuilder();
        switch (args[3]) {
            case "broad" -> broad(b, args[4]);
            case "optimized" -> {
                p.put("topology.optimization", "all");
                optimized(b, args[4]);
            }
            default -> throw new IllegalArgumentException(args[3]);
        }
        KafkaStreams streams = new KafkaStreams(b.build(p), p);
        streams.setStateListener((to, from) -> System.out.println(to));
        streams.setUncaughtExceptionHandler(e -> {
            System.out.println("FAILED " + e);
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.start();
        while (System.in.read() >= 0) {
        }
        streams.close();
    }

    private static void broad(StreamsBuilder b, String prefix) {
        KStream<String, String> clicks = b.stream(prefix + "clicks");
        clicks.merge(b.stream(prefix + "taps")).mapValues(v -> v + "!").to(prefix + "all");
        clicks.groupByKey()
            .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofSeconds(10)))
            .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("per-window")
                .withKeySerde(Serdes.String()))
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()).withName("closing"))
            .toStream((w, n) -> w.key() + "@" + w.window().start())
            .to(prefix + "closed", Produced.with(Serdes.String(), Serdes.Long()));
        clicks.selectKey((user, page) -> page)
            .repartition(Repartitioned.<String, String>as("by-page").withNumberOfPartitions(3))
            .groupByKey()
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("per-page"))
            .toStream()
            .to(prefix + "pages", Produced.with(Serdes.String(), Serdes.Long()));

        KStream<String, String> left = b.stream(prefix + "left");
        KStream<String, String> right = b.stream(prefix + "right");
        left.leftJoin(right, (l, r) -> l + "+" + r,
                JoinWindows.ofTimeDifferenceAndGrace(Duration.ofSeconds(5), Duration.ofHours(1)),
                StreamJoined.<String, String, String>as("joining"))
            .to(prefix + "joined");

        KTable<String, String> users = b.table(prefix + "users", Materialized.as("users"));
        KTable<String, String> cities = b.table(prefix + "cities");
        users.outerJoin(cities, (u, c) -> u + "@" + c, Materialized.as("lives")).toStream().to(prefix + "lives");

        KTable<String, String> orders = b.table(prefix + "orders");
        KTable<String, String> products = b.table(prefix + "products");
        orders.leftJoin(products, o -> o.substring(0, o.indexOf('|')), (o, price) -> o + "=" + price,
                TableJoined.as("pricing"), Materialized.as("priced"))
            .toStream().to(prefix + "priced");

        b.<String, String>stream(prefix + "debits").groupByKey()
            .cogroup((String k, String v, Long sum) -> sum - Long.parseLong(v))
            .cogroup(b.<String, String>stream(prefix + "credits").groupByKey(), (k, v, sum) -> sum + Long.parseLong(v))
            .aggregate(() -> 0L, Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("balances").withValueSerde(Serdes.Long()))
            .toStream().to(prefix + "balances", Produced.with(Serdes.String(), Serdes.Long()));
    }

    private static void optimized(StreamsBuilder b, String prefix) {
        KTable<String, String> prices = b.table(prefix + "prices", Materialized.as("prices"));
        KStream<String, String> sales = b.<String, String>stream(prefix + "sales").map((customer, product) -> KeyValue.pair(product, customer));
        sales.groupByKey(Grouped.as("by-product"))
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("sold"))
            .toStream().to(prefix + "sold", Produced.with(Serdes.String(), Serdes.Long()));
        sales.groupByKey(Grouped.as("again"))
            .reduce((a, c) -> a.compareTo(c) > 0 ? a : c, Materialized.as("last"))
            .toStream().to(prefix + "last");
        sales.leftJoin(prices, (customer, price) -> customer + ":" + price).to(prefix + "bills");

        KStream<String, String> trips = b.stream(prefix + "trips");
        trips.join(trips, (l, r) -> l + "+" + r,
                JoinWindows.ofTimeDifferenceAndGrace(Duration.ofSeconds(5), Duration.ofHours(1)),
                StreamJoined.<String, String, String>as("pairing"))
            .to(prefix + "pairs");
    }
}

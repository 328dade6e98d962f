import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.kafka.clients.admin.Admin;
import java.util.Map;

/** Prints the number of nodes of a cluster, then what it reads, in upper case. */
public class Echo {
    public static void main(String[] args) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
            System.out.println("nodes " + admin.describeCluster().nodes().get().size());
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.startsWith("exit ")) {
                System.err.println("asked to exit");
                System.exit(Integer.parseInt(line.substring(5)));
            }
            System.out.println(line.toUpperCase());
        }
        System.out.print("no line end");
        System.out.flush();
    }
}

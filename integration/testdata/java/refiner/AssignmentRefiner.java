package org.apache.kafka.coordinator.group.streams;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.coordinator.group.streams.topics.ConfiguredTopology;

/**
 * What takes the place of Kafka 4.4's own class of that name, which refines nothing: stateful tasks stay with their
 * owners, and those who are to have them warm up, until they have caught up.
 */
public class AssignmentRefiner {
    private AssignmentRefiner() {
    }

    public static Map<String, TasksTuple> refine(
        Map<String, StreamsGroupMember> members,
        Map<String, TasksTuple> target,
        Map<String, MemberTaskOffsets> offsets,
        ConfiguredTopology topology,
        int numWarmups,
        long acceptableLag
    ) {
        if (topology == null || topology.subtopologies().isEmpty()) {
            return target;
        }
        Map<String, Map<String, Set<Integer>>> active = new HashMap<>();
        Map<String, Map<String, Set<Integer>>> standby = new HashMap<>();
        Map<String, Map<String, Set<Integer>>> warmup = new HashMap<>();
        target.forEach((member, tasks) -> {
            active.put(member, copy(tasks.activeTasks()));
            standby.put(member, copy(tasks.standbyTasks()));
            warmup.put(member, new HashMap<>());
        });
        int warmups = 0;
        for (Map.Entry<String, TasksTuple> entry : target.entrySet()) {
            String next = entry.getKey();
            for (Map.Entry<String, Set<Integer>> tasks : entry.getValue().activeTasks().entrySet()) {
                String subtopology = tasks.getKey();
                boolean stateful = topology.subtopologies().get().containsKey(subtopology)
                    && !topology.subtopologies().get().get(subtopology).stateChangelogTopics().isEmpty();
                for (int partition : tasks.getValue()) {
                    String owner = owner(members, subtopology, partition);
                    if (!stateful || owner == null || owner.equals(next) || !active.containsKey(owner)
                        || caughtUp(offsets.get(next), subtopology, partition, acceptableLag)) {
                        continue;
                    }
                    remove(active.get(next), subtopology, partition);
                    remove(standby.get(owner), subtopology, partition);
                    add(active.get(owner), subtopology, partition);
                    if (warmups < numWarmups) {
                        warmups++;
                        add(warmup.get(next), subtopology, partition);
                    }
                }
            }
        }
        Map<String, TasksTuple> refined = new HashMap<>();
        target.keySet().forEach(member ->
            refined.put(member, new TasksTuple(active.get(member), standby.get(member), warmup.get(member))));
        return refined;
    }

    public static boolean preservesActiveTaskCount(Map<String, TasksTuple> target, Map<String, TasksTuple> refined) {
        return count(target) == count(refined);
    }

    private static int count(Map<String, TasksTuple> assignment) {
        return assignment.values().stream().flatMap(t -> t.activeTasks().values().stream()).mapToInt(Set::size).sum();
    }

    private static String owner(Map<String, StreamsGroupMember> members, String subtopology, int partition) {
        for (StreamsGroupMember member : members.values()) {
            Map<Integer, Integer> active = member.assignedTasks().activeTasksWithEpochs().get(subtopology);
            if (active != null && active.containsKey(partition)) {
                return member.memberId();
            }
        }
        return null;
    }

    private static boolean caughtUp(MemberTaskOffsets offsets, String subtopology, int partition, long acceptableLag) {
        if (offsets == null) {
            return false;
        }
        Long at = offsets.taskOffsets().getOrDefault(subtopology, Map.of()).get(partition);
        Long end = offsets.taskEndOffsets().getOrDefault(subtopology, Map.of()).get(partition);
        return at != null && end != null && at >= end - acceptableLag;
    }

    private static Map<String, Set<Integer>> copy(Map<String, Set<Integer>> tasks) {
        Map<String, Set<Integer>> copy = new HashMap<>();
        tasks.forEach((subtopology, partitions) -> copy.put(subtopology, new HashSet<>(partitions)));
        return copy;
    }

    private static void add(Map<String, Set<Integer>> tasks, String subtopology, int partition) {
        tasks.computeIfAbsent(subtopology, s -> new HashSet<>()).add(partition);
    }

    private static void remove(Map<String, Set<Integer>> tasks, String subtopology, int partition) {
        Set<Integer> partitions = tasks.get(subtopology);
        if (partitions != null && partitions.remove(partition) && partitions.isEmpty()) {
            tasks.remove(subtopology);
        }
    }
}

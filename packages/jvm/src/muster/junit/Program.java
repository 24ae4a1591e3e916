package muster.junit;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * Finds the program. It is in a jar of its own for each platform, and is unpacked once, into a folder that is named for
 * its checksum, so that other versions and other processes do not meet there.
 */
final class Program {
    private static Path unpacked;

    private Program() {}

    /** The path of the program: that of muster.binary or MUSTER_BINARY, or the one of the jar for this platform. */
    static synchronized Path path() {
        String other = setting("muster.binary", "MUSTER_BINARY");
        if (other != null) {
            return Path.of(other);
        }
        if (unpacked == null || !Files.exists(unpacked)) {
            unpacked = unpack(platform(System.getProperty("os.name"), System.getProperty("os.arch")), folders());
        }
        return unpacked;
    }

    /** The value of a system property, or of a variable, or null. */
    private static String setting(String property, String variable) {
        String value = System.getProperty(property, System.getenv(variable));
        return value == null || value.isEmpty() ? null : value;
    }

    /** The classifier of the jar for a platform. */
    static String platform(String os, String arch) {
        String name = os.toLowerCase(Locale.ROOT);
        String system = name.startsWith("mac") ? "osx" : name.startsWith("windows") ? "windows" : name;
        switch (arch) {
            case "amd64":
            case "x86_64":
                return system + "-x86_64";
            case "aarch64":
            case "arm64":
                return system + "-aarch_64";
            default:
                return system + "-" + arch;
        }
    }

    /** Where the program may be unpacked: where the user says, or else in the user's cache, or a new temporary folder. */
    private static List<Path> folders() {
        String given = setting("muster.cache", "MUSTER_CACHE");
        List<Path> folders = new ArrayList<>();
        if (given != null) {
            folders.add(Path.of(given));
            return folders;
        }
        String cache = System.getenv("XDG_CACHE_HOME");
        String local = System.getenv("LOCALAPPDATA");
        String home = System.getProperty("user.home");
        if (cache != null && Path.of(cache).isAbsolute()) {
            folders.add(Path.of(cache, "muster"));
        } else if (local != null && !local.isEmpty()) {
            folders.add(Path.of(local, "muster", "cache"));
        } else if (home != null && Path.of(home).isAbsolute()) {
            boolean mac = System.getProperty("os.name").startsWith("Mac");
            folders.add(mac ? Path.of(home, "Library", "Caches", "muster") : Path.of(home, ".cache", "muster"));
        }
        folders.add(null);
        return folders;
    }

    /** Unpacks the program for a platform into the first of the folders that can be written; null is a new temporary one. */
    static Path unpack(String platform, List<Path> folders) {
        String file = platform.startsWith("windows") ? "muster.exe" : "muster";
        String resource = "/muster/binary/" + platform + "/" + file;
        String sum = read(resource + ".sha256", platform);
        StringBuilder failures = new StringBuilder();
        for (Path folder : folders) {
            try {
                return unpackInto(folder == null ? temporary() : folder.resolve(sum.substring(0, 16)), file, resource);
            } catch (IOException | UnsupportedOperationException e) {
                failures.append("\n  ").append(e);
            }
        }
        throw new StartException("muster: there is no folder to unpack the program into. Set the system property muster.cache "
                + "or the variable MUSTER_CACHE to a folder that this user can write:" + failures);
    }

    private static Path temporary() throws IOException {
        Path folder = Files.createTempDirectory("muster"); // Only this user can write there.
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try (var files = Files.list(folder)) {
                for (Path p : (Iterable<Path>) files::iterator) {
                    Files.delete(p);
                }
                Files.delete(folder);
            } catch (IOException e) {
                // It is in a folder for temporary files.
            }
        }));
        return folder;
    }

    private static Path unpackInto(Path folder, String file, String resource) throws IOException {
        Path program = folder.resolve(file);
        if (Files.isExecutable(program)) {
            return program; // It got its name when it was complete.
        }
        Files.createDirectories(folder);
        Path part = Files.createTempFile(folder, file, ".part");
        try (InputStream in = Program.class.getResourceAsStream(resource)) {
            Files.copy(in, part, StandardCopyOption.REPLACE_EXISTING);
            if (!part.toFile().setExecutable(true, true)) {
                throw new IOException(part + " cannot be made executable");
            }
            move(part, program);
        } finally {
            Files.deleteIfExists(part);
        }
        return program;
    }

    private static void move(Path part, Path program) throws IOException {
        try {
            Files.move(part, program, StandardCopyOption.ATOMIC_MOVE);
        } catch (AtomicMoveNotSupportedException | FileAlreadyExistsException e) {
            Files.move(part, program, StandardCopyOption.REPLACE_EXISTING);
        } catch (IOException e) {
            if (!Files.isExecutable(program)) { // On Windows another process may run the one that it has moved there.
                throw e;
            }
        }
    }

    private static String read(String resource, String platform) {
        try (InputStream in = Program.class.getResourceAsStream(resource)) {
            if (in == null) {
                throw new StartException("muster: there is no program for " + platform + " on the class path. Add muster-binary with the "
                        + "classifier " + platform + " to the test dependencies; there are linux, osx and windows, each with x86_64 and "
                        + "aarch_64. Or set MUSTER_BINARY to the path of a muster program.");
            }
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new StartException("muster: cannot read " + resource, e);
        }
    }
}

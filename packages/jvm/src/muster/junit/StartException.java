package muster.junit;

/** A broker did not start. The message says why, with the end of the broker's log if there is one. */
public final class StartException extends RuntimeException {
    private static final long serialVersionUID = 1;

    StartException(String message) {
        super(message);
    }

    StartException(String message, Throwable cause) {
        super(message, cause);
    }
}

#include "impl.h"

ACL_API aclError aclrtCreateStreamImpl(aclrtStream *stream) {
    return stream ? rtStreamCreate(stream, 0) : ACL_INVALID_PARAM;
}

ACL_API aclError aclrtCreateStreamWithConfigImpl(aclrtStream *stream, uint32_t priority, uint32_t flag) {
    return stream ? rtStreamCreateWithFlags(stream, (int32_t)priority, flag) : ACL_INVALID_PARAM;
}

ACL_API aclError aclrtDestroyStreamImpl(aclrtStream stream) {
    return rtStreamDestroy(stream);
}

ACL_API aclError aclrtDestroyStreamForceImpl(aclrtStream stream) {
    return rtStreamDestroyForce(stream);
}

ACL_API aclError aclrtSynchronizeStreamImpl(aclrtStream stream) {
    return rtStreamSynchronize(stream);
}

ACL_API aclError aclrtSynchronizeStreamWithTimeoutImpl(aclrtStream stream, int32_t timeout) {
    return rtStreamSynchronizeWithTimeout(stream, timeout);
}

/* The runtime answers with codes, acl with a status: 0 complete, 1 not. */
ACL_API aclError aclrtStreamQueryImpl(aclrtStream stream, int *status) {
    if (!status)
        return ACL_INVALID_PARAM;
    aclError code = rtStreamQuery(stream);
    if (code && code != RT_STREAM_NOT_COMPLETE)
        return code;
    *status = code != 0;
    return 0;
}

ACL_API aclError aclrtStreamWaitEventImpl(aclrtStream stream, aclrtEvent event) {
    return rtStreamWaitEvent(stream, event);
}

ACL_API aclError aclrtCreateEventImpl(aclrtEvent *event) {
    return rtEventCreate(event);
}

ACL_API aclError aclrtCreateEventWithFlagImpl(aclrtEvent *event, uint32_t flag) {
    return rtEventCreateWithFlag(event, flag);
}

ACL_API aclError aclrtCreateEventExWithFlagImpl(aclrtEvent *event, uint32_t flag) {
    return rtEventCreateExWithFlag(event, flag);
}

ACL_API aclError aclrtDestroyEventImpl(aclrtEvent event) {
    return rtEventDestroy(event);
}

ACL_API aclError aclrtRecordEventImpl(aclrtEvent event, aclrtStream stream) {
    return rtEventRecord(event, stream);
}

ACL_API aclError aclrtResetEventImpl(aclrtEvent event, aclrtStream stream) {
    return rtEventReset(event, stream);
}

ACL_API aclError aclrtSynchronizeEventImpl(aclrtEvent event) {
    return rtEventSynchronize(event);
}

ACL_API aclError aclrtSynchronizeEventWithTimeoutImpl(aclrtEvent event, int32_t timeout) {
    return rtEventSynchronizeWithTimeout(event, timeout);
}

ACL_API aclError aclrtQueryEventStatusImpl(aclrtEvent event, int *status) {
    return rtEventQueryStatus(event, status);
}

ACL_API aclError aclrtQueryEventWaitStatusImpl(aclrtEvent event, int *status) {
    return rtEventQueryWaitStatus(event, status);
}

ACL_API aclError aclrtEventElapsedTimeImpl(float *ms, aclrtEvent start, aclrtEvent end) {
    return rtEventElapsedTime(ms, start, end);
}

ACL_API aclError aclrtEventGetTimestampImpl(aclrtEvent event, uint64_t *time) {
    return rtEventGetTimeStamp(time, event);
}

ACL_API aclError aclmdlRICaptureBeginImpl(aclrtStream stream, int mode) {
    return rtStreamBeginCapture(stream, mode);
}

ACL_API aclError aclmdlRICaptureEndImpl(aclrtStream stream, aclmdlRI *model) {
    return rtStreamEndCapture(stream, model);
}

ACL_API aclError aclmdlRICaptureGetInfoImpl(aclrtStream stream, int *status, aclmdlRI *model) {
    return rtStreamGetCaptureInfo(stream, status, model);
}

ACL_API aclError aclmdlRIExecuteImpl(aclmdlRI model, int32_t timeout) {
    ACL_NEED(rtsModelExecute);
    return rtsModelExecute(model, timeout);
}

ACL_API aclError aclmdlRIExecuteAsyncImpl(aclmdlRI model, aclrtStream stream) {
    return rtModelExecute(model, stream, 0);
}

ACL_API aclError aclmdlRIDestroyImpl(aclmdlRI model) {
    return rtModelDestroy(model);
}
